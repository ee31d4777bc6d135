"""Output of the three outcomes side by side: terminal, CSV or JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, TextIO

from gpureport.compute.quotas.scene import Row
from gpureport.schedulers.allocation import ASSUMPTIONS
from gpureport.schedulers.replay import SIMPLIFICATIONS
from gpureport.values.catalog import REASONS
from gpureport.values.text import formats
from gpureport.values.text.rows import Output, print_rows
from gpureport.values.window import Window, rfc3339
from gpureport.whatif.compare import Answer
from gpureport.whatif.question import Question
from gpureport.whatif.steps import MOST_PODS

KEY = ("cluster", "system", "resource", "flavor", "quota")
VARIANTS = ("recorded", "replayed", "changed")
"""Recorded outcome, replay without changes, and replay with the change."""
NAMES = (*KEY, "figure", *VARIANTS, "difference")
_DIGITS = 9
_MOST_PARTS = 4
_ERROR = "replay_error_gpu_hours"
"""Absolute difference between replay and record, summed over all steps."""
_RECORDED_PODS = ("over_quota_gpu_hours", "exposed_pod_count")


def side_by_side(answer: Answer) -> list[Row]:
    """Return one row per quota and figure: value of each variant, and changed minus replayed; None where one is unknown."""
    variants = [_by_quota(rows) for rows in (answer.recorded, answer.replayed, answer.changed)]
    return [
        {**dict(zip(KEY, quota, strict=True)), "figure": figure, **_values(found)}
        for quota, recorded in variants[0].items()
        for figure, found in (
            *((name, [each.get(quota, {}).get(name) for each in variants]) for name in recorded if name not in KEY),
            (_ERROR, [None, answer.errors.get(quota), None]),
        )
    ]


def _by_quota(rows: Sequence[Row]) -> dict[tuple[str, ...], Row]:
    return {tuple(row[name] for name in KEY): row for row in rows}


def _values(found: Sequence[float | None]) -> Row:
    recorded, replayed, changed = map(_rounded, found)
    difference = None if changed is None or replayed is None else _rounded(changed - replayed)
    return {"recorded": recorded, "replayed": replayed, "changed": changed, "difference": difference}


def _rounded(found: float | None) -> float | None:
    """Return nine significant digits, as in all output; a rounding error near 0 becomes 0."""
    if found is None or isinstance(found, int):
        return found
    return 0.0 if abs(found) < 10**-_DIGITS else float(f"{found:.{_DIGITS}g}")


def verdict(answer: Answer) -> str:
    """Return the main differences in one sentence: less or more waiting, or fewer borrowed GPU-hours."""
    replayed, changed = _by_quota(answer.replayed), _by_quota(answer.changed)
    found, is_known, several = [], True, len({key[0] for key in replayed}) > 1
    for key, before in replayed.items():
        name = f"{key[-1]} ({key[0]})" if several else key[-1]
        after = changed.get(key, {})
        less, lost = _less(_waited(before), _waited(after)), _less(before["borrowed_gpu_hours"], after.get("borrowed_gpu_hours"))
        is_known = is_known and None not in (_waited(before), _waited(after))
        if less:
            amount = formats.significant(abs(less))
            found.append((abs(less), f"{name} would have waited {amount} GPU-hours {'less' if less > 0 else 'more'}"))
        if lost > 0:
            had = formats.significant(before["borrowed_gpu_hours"])
            found.append((lost, f"{name} would have lost {formats.significant(lost)} of {had} borrowed GPU-hours"))
    if not replayed:
        return "No quota could be replayed."
    if not found:
        return f"No quota would have waited less or more{'' if is_known else ', as far as is known'}."
    return f"{'; '.join(text for _, text in sorted(found, key=lambda each: -each[0])[:_MOST_PARTS])}."


def _waited(row: Row) -> float | None:
    """Return GPU-hours requested but not allocated; None where unknown."""
    demanded, delivered = row.get("demanded_gpu_hours"), row.get("delivered_gpu_hours")
    return None if demanded is None or delivered is None else demanded - delivered


def _less(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None or abs(before - after) < 10**-6 else before - after


def print_answer(answer: Answer, question: Question, window: Window, output: Output, out: TextIO) -> None:
    """Print the rows; a terminal shows only named or changed quotas, with readable labels."""
    rows = side_by_side(answer)
    if output == "json":
        json.dump(_whole(answer, question, window, rows), out, indent=1, ensure_ascii=False, allow_nan=False)
        out.write("\n")
    elif output == "csv":
        print_rows(NAMES, [[row[name] for name in NAMES] for row in rows], "csv", out)
    else:
        out.write(f"{verdict(answer)}\n")
        _print_table(answer, rows, out)


def notes(answer: Answer, question: Question, window: Window) -> list[tuple[int, str]]:
    """Return question, limits and omissions of the figures, one sentence each with its log level."""
    known = [
        f"{window}: {'; '.join(question.words())}{_added(answer)}.",
        "recorded: the recorded outcome; replayed: the outcome by the rules for the same demand; changed: with the change.",
        *(f"{system}: {ASSUMPTIONS[system]}." for system in answer.systems),
        *SIMPLIFICATIONS,
        *([_AMOUNTS_NOTE.format(formats.counted(len(answer.by_amounts), "pool"))] if answer.by_amounts else []),
        *([_LABELS_NOTE] if "nos" in answer.systems else []),
        *_past_notes(answer, question),
    ]
    doubts = [
        *answer.doubts,
        *(
            f"{formats.counted(count, 'pod')} of nos' quotas request {resource}, which nos does not count"
            for resource, count in answer.uncounted_pods.items()
        ),
        *(
            f"{formats.duration(seconds)} of {' '.join(filter(None, pool))} are not replayed: {REASONS[why]}"
            for (pool, why), seconds in sorted(answer.left_out_seconds.items())
        ),
    ]
    return [(logging.INFO, note) for note in known] + [(logging.WARNING, doubt) for doubt in doubts]


def _past_notes(answer: Answer, question: Question) -> list[str]:
    """Return a note on the recorded use before the window, if KAI's kValue is set."""
    if "kai" not in answer.systems or not dict(question.rules).get("k_value"):
        return []
    clusters = {row["cluster"] for row in answer.replayed if row["system"] == "kai"}
    known = ", ".join(f"{hours} h in {each}" for each, hours in answer.past_hours.items() if each in clusters) or "none"
    return [f"kai: recorded use before the window, as far as facts are computed: {known}."]


def _added(answer: Answer) -> str:
    return f" (capacity: {formats.significant(answer.added_gpus)} more allocatable GPUs)" if answer.added_gpus else ""


_AMOUNTS_NOTE = f"{{}} replayed as divisible amounts: pods unknown, more than {MOST_PODS:,} pods, or a ResourceQuota."
_LABELS_NOTE = f"{' and '.join(_RECORDED_PODS)} describe the recorded pods at their recorded times, under the changed quotas."


def _whole(answer: Answer, question: Question, window: Window, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "verdict": verdict(answer),
        "start_at": rfc3339(window.start_at),
        "end_at": rfc3339(window.end_at),
        "asked": question.words(),
        "assumptions": {system: ASSUMPTIONS[system] for system in answer.systems},
        "unknowable": list(SIMPLIFICATIONS),
        "doubts": list(answer.doubts),
        "uncounted_pods": dict(answer.uncounted_pods),
        "added_gpus": _rounded(answer.added_gpus),
        "left_out": [
            {**pool._asdict(), "reason": why, "seconds": _rounded(seconds)}
            for (pool, why), seconds in sorted(answer.left_out_seconds.items())
        ],
        "outcomes": rows,
    }


def _print_table(answer: Answer, rows: Sequence[Row], out: TextIO) -> None:
    """Print a table; key columns with one value in all rows are left out."""
    shown = [row for row in rows if _is_shown(row, rows, answer)]
    keys = [name for name in KEY if name == "quota" or len({row[name] for row in rows}) > 1]
    names = [*keys, "figure", *VARIANTS, "difference"]
    print_rows(names, [[*(row[name] for name in keys), *_cells(row)] for row in shown], "table", out)


def _is_shown(row: Row, rows: Sequence[Row], answer: Answer) -> bool:
    """Return whether the quota is named or changed, and the figure is not 0 or unknown in all variants."""
    if not any(row[variant] for variant in VARIANTS):
        return False
    key = [row[name] for name in KEY]
    is_named = (row["cluster"], row["system"], row["quota"]) in answer.changed_quotas
    return is_named or any(each["difference"] for each in rows if [each[name] for name in KEY] == key)


def _cells(row: Row) -> list[str]:
    figure = row["figure"]
    unit = formats.unit(figure)
    shown = [
        formats.duration(row[name]) if figure.endswith("_seconds") else formats.value(figure, row[name]) for name in VARIANTS
    ]
    difference = row["difference"]
    if difference is None or difference == 0:
        text = formats.UNKNOWN if difference is None else "="
    else:
        size = formats.duration(abs(difference)) if figure.endswith("_seconds") else formats.value(figure, abs(difference))
        text = f"{'+' if difference > 0 else '−'}{size}"
    name = formats.words(figure.removesuffix("_gpu_hours").removesuffix("_ratio").removesuffix("_seconds"))
    return [f"{name}, {unit}" if unit and unit != "s" else name, *shown, text]
