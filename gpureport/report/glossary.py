"""The words of the page, for readers who did not write it."""

from __future__ import annotations

GLOSSARY = (
    (
        "GPU-hour",
        "one whole GPU for an hour; a MIG instance counts its slices of 7, sharers what each was given of it, else equal parts",
    ),
    ("capacity", "the GPUs that were seen, or expected by evidence, times the window; replicas of time slicing are not GPUs"),
    ("held, allocated", "a running container had the GPU, whatever it did with it"),
    ("active", "held, and some signal says that it worked: utilisation, engine, SMs or the links"),
    ("effective", "active with half of its SMs or more at work on average"),
    ("held idle", "held by a container and not active"),
    ("reserved idle", "a resource claim had it and no container ran on it"),
    ("free", "nobody had it"),
    ("stranded", "nobody had it, and nothing that was asked for could be placed on it"),
    ("unknown", "not seen, or seen without knowing what it did or whose it was; never shown as zero"),
    ("utilisation", "share of the time in which something was running, however small"),
    ("SM activity, occupancy", "share of the multiprocessors that had work, and how full of warps they were"),
    ("saturation", "time in which more was asked for than there was: throttled clocks, memory nearly full, links at their limit"),
    ("throttled", "share of the time in which clocks were held back, by power, heat or the hardware"),
    ("memory pressure", "share of the time in which memory in use was at the threshold or above"),
    ("XID", "an error code of NVIDIA's driver; the count is a lower bound, because repeats of one code do not show"),
    ("energy above idle", "what the GPU drew beyond its idle baseline while held; ≥ where none of its model was ever seen idle"),
    ("coverage", "seen time ÷ time that could have been seen"),
    ("guaranteed, borrowed, lent", "what a quota promises; what was held beyond one's own; what of one's own others held"),
    ("wait", "from a pod's creation until it was given a node"),
)
"""Terms and what they mean here."""
