"""The glossary lint: words that readers stumble over, by file and line (``make lint``).

    python tests/glossary.py [FILE…]

Looks at what people read: templates, the page's words, help of commands, catalogs of findings, README. ``held_seconds`` of a
sample and names in code stay as they are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
READ = ("templates/*", "gpureport/report/page/*.py", "gpureport/report/summary.py", "queries/catalog/finding.csv", "README.md")
WORDS = {
    r"what became of": "GPU usage report; no data for",
    r"\bheld idle\b|\bheld and idle\b|\bidle held\b": "allocated, idle",
    r"\bineffective\b(?!_sm)": "underutilized (SM activity below 50 %)",
    r"depth unknown": "active, SM activity not measured",
    r"\bstranded\b(?![\"'])": "fragmented (unschedulable)",
    r"\bnobody(?:'s|s)?\b(?! named)": "free; unallocated; unknown",
    r"not seen\b|(?<!\.)\bunseen\b(?!_ratio)": "no data; data coverage",
    r"unknown whose|whose a\b": "allocation unknown",
    r"worked out without|the proof\b": "reconciled; reconciliation",
    r"window before": "previous period",
    r"held back by": "thermal throttling; power capping; hardware slowdown",
    r"given out\b|was not given\b": "over-allocated; not allocated",
    r"not honou?red": "not met",
    r"asked for\b": "requested",
    r"fully held": "capacity exhaustion forecast",
    r"how long the gpus will": "capacity runway",
    r"four days of five|eight of ten": "80 % interval",
    r"divisible as water": "simplification: pods are treated as divisible",
    r"how long what is kept|three in the morning|the job watches itself": "retention; troubleshooting; monitoring the job",
    r"\bungiven\b|\bovergrant\b": "not allocated; over-allocation",
    r"stood free|stood idle|\bwhence\b|\bit is told\b|\bgives out\b|\bsuffices?\b": "was free; was idle; source of; reported",
    r"\butilisation\b|\bcolour|\bcatalogue\b": "American spelling",
    r"in the lake stands?|stands? beside|stands? in\b": "is; is stored",
}
"""Patterns, and what to write instead; the whole list is the glossary."""


def found_in(path: Path) -> list[str]:
    """Each use of such a word, with its place and what to write."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        f"{path.relative_to(ROOT)}:{number}: {hit[0]!r}: write {instead!r}"
        for number, line in enumerate(lines, 1)
        for pattern, instead in WORDS.items()
        if (hit := re.search(pattern, line, re.IGNORECASE))
    ]


def files() -> list[Path]:
    """What people read."""
    return sorted(path for pattern in READ for path in ROOT.glob(pattern) if path.is_file())


if __name__ == "__main__":
    chosen = [Path(each).resolve() for each in sys.argv[1:]] or files()
    lines = [line for path in chosen for line in found_in(path)]
    print("\n".join(lines) or f"{len(chosen)} files, no word of the glossary's left column")
    sys.exit(bool(lines))
