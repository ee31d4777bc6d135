"""Plan of a simulation: the complete input of the generator, validated once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta

from gpureport.values.errors import UsageError
from gpureport.values.window import DAY_MS, Window, day_start, to_ms

GPUS_PER_NODE = 8

SIGNALS_14 = (
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_POWER_VIOLATION",
    "DCGM_FI_DEV_THERMAL_VIOLATION",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_SM_OCCUPANCY",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
)
"""Signals sufficient for saturation figures and power."""

SIGNALS_ALL = (
    *SIGNALS_14,
    "DCGM_FI_DEV_MEM_COPY_UTIL",
    "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION",
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
    "DCGM_FI_PROF_NVLINK_TX_BYTES",
    "DCGM_FI_PROF_NVLINK_RX_BYTES",
)
"""All signals that an exporter with a full counter file reports for these GPUs."""


SCENARIOS = ("mixed", "review")


def choose_signals(text: str) -> tuple[str, ...]:
    """Return metric names for ``14``, ``all`` or a comma-separated list; UsageError for a name that is not simulated."""
    if text == "14":
        return SIGNALS_14
    if text == "all":
        return SIGNALS_ALL
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in SIGNALS_ALL]
    if unknown or not names:
        named = f"{', '.join(unknown)} is not simulated" if unknown else "none is named"
        raise UsageError(f"signals: {named}; write 14, all, or names such as {SIGNALS_ALL[0]}")
    return names


@dataclass(frozen=True)
class SimulationPlan:
    """A synthetic cluster: the same plan gives the same samples, objects and truth, byte for byte.

    Shares are fractions (0..1) of GPUs (``mig_share``, ``sharing_share``) or nodes (``dra_share``), spread evenly.
    ``pod_life_factor`` multiplies the lifetime of pods; with 1, a GPU has three or four pods a day.
    ``kube_state_step_seconds`` = 0 omits kube-state-metrics series; finished pods stay in them for
    ``finished_listed_hours``, with 0 forever. ``scenario``: mixed plants random problems; review plants problems in known
    places (``role``), so that the findings of a report are known to the hour. UsageError for invalid values.
    """

    gpus: int
    days: int
    start_date: date
    seed: int = 0
    step_seconds: int = 30
    signals: tuple[str, ...] = SIGNALS_14
    mig_share: float = 0.1
    sharing_share: float = 0.1
    dra_share: float = 0.125
    pod_life_factor: float = 1.0
    kube_state_step_seconds: int = 60
    finished_listed_hours: int = 0
    scenario: str = "mixed"

    def __post_init__(self) -> None:
        _check_count("gpus", self.gpus, 1, 1_000_000)
        _check_count("days", self.days, 1, 3_660)
        _check_count("seed", self.seed, 0, 2**63 - 1)
        _check_step("step-seconds", self.step_seconds)
        if self.kube_state_step_seconds:
            _check_step("kube-state-step-seconds", self.kube_state_step_seconds)
        for name in ("mig_share", "sharing_share", "dra_share"):
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise UsageError(f"{name.replace('_', '-')} is {share}; give a share from 0 to 1")
        if not 0.1 <= self.pod_life_factor <= 1000:
            raise UsageError(f"pod-life-factor is {self.pod_life_factor}; give a number from 0.1 to 1000")
        choose_signals(",".join(self.signals))
        _check_count("finished-listed-hours", self.finished_listed_hours, 0, 100_000)
        if self.scenario not in SCENARIOS:
            raise UsageError(f"scenario is {self.scenario!r}; give {' or '.join(SCENARIOS)}")

    @property
    def node_count(self) -> int:
        """Return the number of nodes of eight GPUs; the last may have fewer."""
        return -(-self.gpus // GPUS_PER_NODE)

    @property
    def window(self) -> Window:
        """Return the window of all simulated days."""
        return Window(day_start(self.start_date), day_start(self.start_date + timedelta(days=self.days)))

    @property
    def dates(self) -> list[date]:
        """Return the simulated days, in order."""
        return list(self.window.days())

    @property
    def steps_per_day(self) -> int:
        """Return the number of scrapes per day."""
        return DAY_MS // 1000 // self.step_seconds

    @property
    def step_count(self) -> int:
        """Return the total number of scrapes."""
        return self.steps_per_day * self.days

    @property
    def start_second(self) -> int:
        """Return the start in seconds since the epoch."""
        return to_ms(self.window.start_at) // 1000

    @property
    def end_second(self) -> int:
        """Return the end in seconds since the epoch, exclusive."""
        return to_ms(self.window.end_at) // 1000


def review_plan(gpus: int, days: int, start_date: date, step_seconds: int = 300) -> SimulationPlan:
    """Return a plan with problems in known places: whole GPUs except where a problem needs MIG instances, and no claims."""
    return SimulationPlan(
        gpus,
        days,
        start_date,
        step_seconds=step_seconds,
        mig_share=0,
        sharing_share=0,
        dra_share=0,
        pod_life_factor=3,
        kube_state_step_seconds=step_seconds,
        finished_listed_hours=2,
        scenario="review",
    )


def demo_plan(gpus: int, days: int, start_date: date) -> SimulationPlan:
    """Return the review plan with MIG instances, shared GPUs and resource claims added, and with longer steps."""
    plan = review_plan(gpus, days, start_date, step_seconds=600)
    return replace(plan, mig_share=0.06, sharing_share=0.04, dra_share=0.06)


def _check_count(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise UsageError(f"{name} is {value}; give a number from {least} to {most}")


def _check_step(name: str, seconds: int) -> None:
    if not 1 <= seconds <= 3600 or DAY_MS // 1000 % seconds:
        raise UsageError(f"{name} is {seconds}; give 1 to 3600 seconds that divide a day evenly, such as 15, 30 or 60")
