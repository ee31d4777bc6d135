"""Hand-made series: samples exactly on the bounds of a window, and values that are no ordinary numbers."""

from __future__ import annotations

from gpureport.values.window import Window, from_ms

from .samples import text_of

START_MS = 1_794_787_200_000  # 2026-11-16T00:00:00Z
STEP_MS = 15_000
END_MS = START_MS + 40 * STEP_MS  # ten minutes
WINDOW = Window(from_ms(START_MS), from_ms(END_MS))

REGULAR = {"__name__": "edge_regular", "host": "a", "job": "x.y+z (1|2)"}
ODD = {"__name__": "edge_odd", "host": "a"}
JUST_OUTSIDE = {"__name__": "edge_outside", "host": "b"}

ESCAPED = ['quote"d', "back\\slash", "two\nlines"]
HOSTS = ["plain", "a.b", "axb", "a+", "(a|b)", "[ab]", "a$", "^a", "a{2}", "aa", "a*?", "日本 ü", *ESCAPED]
"""Label values that a selector must take literally."""

# From one step before the window to one after it, a sample on each bound.
REGULAR_SAMPLES = [(START_MS + n * STEP_MS, f"{n}.5") for n in range(-1, 42)]
ODD_SAMPLES = [
    (START_MS + n * 1000 + n, value)
    for n, value in enumerate(["+Inf", "-Inf", "NaN", "0", "-0", "1e-320", "1.7976931348623157e308"])
]
OUTSIDE_SAMPLES = [(START_MS - 1, "1"), (END_MS, "2")]
NAMED = [({"__name__": "named", "host": host}, [(START_MS, str(number))]) for number, host in enumerate(HOSTS)]

TEXT = text_of([(REGULAR, REGULAR_SAMPLES), (ODD, ODD_SAMPLES), (JUST_OUTSIDE, OUTSIDE_SAMPLES), *NAMED])
