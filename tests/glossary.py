"""The glossary lint: words that are hard to read, by file and line (``make lint``).

    python tests/glossary.py [FILE…]

Three lists: words that the page must not use; words that no text must use (templates, documents, help, errors, SQL headers and
comments, sentences of the catalogs); and words that are not part of a name in code.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ("templates/*", "gpureport/report/page/*.py", "gpureport/report/summary.py", "queries/catalog/finding.csv", "README.md")
READ = (
    *PAGE,
    *("docs/*.md", "CHANGELOG.md", "CONTRIBUTING.md", "queries/README.md", "queries/catalog/[cdfgmrst]*.csv"),
    *("queries/*/*.sql", "gpureport/**/*.py"),
)
WORDS = {
    r"what became of": "GPU usage report; no data for",
    r"\bheld idle\b|\bheld and idle\b|\bidle held\b": "allocated, idle",
    r"depth unknown": "active, SM activity not measured",
    r"(?<![('])\bnobody(?:'s|s)?\b(?! named)(?![)'])": "free; unallocated; unknown; no pod",
    r"\b(?:is|are|was|were) not seen\b": "no data; data coverage",
    r"unknown whose|whose a\b": "allocation unknown",
    r"worked out without|the proof\b": "reconciled; reconciliation",
    r"window before\b(?! they)": "previous period",
    r"held back by": "thermal throttling; power capping; hardware slowdown",
    r"given out\b|was not given\b": "over-allocated; allocated; not allocated",
    r"not honou?red": "not met",
    r"\basked for\b|\basks? for\b": "requested",
    r"fully held": "capacity exhaustion forecast",
    r"how long the gpus will": "capacity runway",
    r"four days of five|eight of ten": "80 % interval",
    r"\bof which (?:nothing|it is|every|only|none)\b|\b(?:is|are) not told\b": "without; has no data",
    r"divisible as water": "simplification: pods are treated as divisible",
    r"how long what is kept|three in the morning|the job watches itself": "retention; troubleshooting; monitoring the job",
    r"\bungiven\b|\bovergrant\b(?!\")": "not allocated; over-allocation",
    r"stood free|stood idle|\bwhence\b|\bit is told\b|\bgives out\b|\bsuffices?\b": "was free; was idle; source of; reported",
    r"\butilisation\b|\bcolour|\bcatalogue\b": "American spelling",
    r"in the lake stands?|\bstands? beside\b|\bstands? in\b": "is; is stored",
}
"""Patterns that no text contains, each with its replacement; the whole list is the glossary."""
PAGE_WORDS = {
    r"\bineffective\b(?!_sm)": "underutilized (SM activity below 50 %)",
    r"\bstranded\b(?![\"'])": "fragmented (unschedulable)",
    r"\bnot seen\b|(?<!\.)\bunseen\b(?!_ratio)": "no data; data coverage",
}
"""Only for the page: in other places they are also codes and names of columns."""
NAMES = {
    "ask asks asked asking": "request, requested, query",
    "told untold tell tells said says stated": "reported, known; what it is: text, rows, reason",
    "look looks": "snapshot; inspect",
    "offer offers offered": "allocatable, advertised",
    "room": "free, space",
    "piece pieces span spans stretch stretches turn moment course courses": "interval, step, run, part",
    "earlier ungiven overgrant": "previous; not allocated; over-allocation",
}
"""Words that are not part of a name in code, each with its replacement."""
STORED = {"asked", "look_back", "tell"}
"""A column of lakes, the field's own term, and a method of Python's files."""
DOCSTRINGS = ("gpureport/commands/", "gpureport/report/page/")
"""Folders whose docstrings are help or are read as documents; other docstrings are code."""


def found_in(path: Path) -> list[str]:
    """Each use of such a word, with its place and its replacement."""
    name = path.relative_to(ROOT)
    words = WORDS | PAGE_WORDS if any(name.match(pattern) for pattern in PAGE) else WORDS
    return [
        f"{name}:{number}: {hit[0]!r}: write {instead!r}"
        for number, line in texts(path)
        for pattern, instead in words.items()
        if (hit := re.search(pattern, line, re.IGNORECASE))
    ] + [
        f"{name}:{number}: {found!r}: name it {instead}"
        for number, found in names(path)
        for bad, instead in NAMES.items()
        if found not in STORED and {*bad.split()} & {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", found)}
    ]


def names(path: Path) -> Iterator[tuple[int, str]]:
    """The names in code, with their lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from (
            (each.start[0], each.string)
            for each in tokenize.generate_tokens(io.StringIO(text).readline)
            if each.type == tokenize.NAME
        )
    elif path.suffix == ".sql":
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip().startswith("--"):
                yield from ((number, found) for found in re.findall(r"[A-Za-z_]\w+", re.sub(r"'[^']*'", "", line)))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that people read, with their numbers: headers and comments of SQL, sentences in code."""
    text, name = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
    lines = list(enumerate(text.splitlines(), 1))
    if path.suffix == ".sql":
        yield from ((number, line) for number, line in lines if line.strip().startswith("--"))
    elif path.suffix == ".py" and not name.startswith("gpureport/report/page/"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_docstring = token.string.startswith('"""') and not name.startswith(DOCSTRINGS)
            if token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)) and not is_docstring:
                yield from enumerate(token.string.splitlines(), token.start[0])
    elif path.name == "CHANGELOG.md":
        ends = [number for number, line in lines if line.startswith("## ")][1:]
        yield from lines[: ends[0] - 1 if ends else None]
    else:
        yield from lines


def files() -> list[Path]:
    """The files that people read."""
    return sorted({path for pattern in READ for path in ROOT.glob(pattern) if path.is_file()})


if __name__ == "__main__":
    chosen = [Path(each).resolve() for each in sys.argv[1:]] or files()
    lines = [line for path in chosen for line in found_in(path)]
    print("\n".join(lines) or f"{len(chosen)} files, no word of the glossary's left column")
    sys.exit(bool(lines))
