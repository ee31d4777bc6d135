"""Reports without a cluster: the bundled recording, a simulated month, and simulated clusters of any size."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from gpureport.config import Config
from gpureport.lake.migrate import migrate
from gpureport.pipeline.observing import import_files
from gpureport.pipeline.progress import progress_bar
from gpureport.pipeline.refusal import out_errors
from gpureport.pipeline.reporting import Reported, compute, report
from gpureport.resources import RECORDING
from gpureport.store import Place
from gpureport.window import Window, parse_date, parse_instant

DEMO_CLUSTER = "h200-recording"
DEMO_MONTH = date(2026, 10, 1)
DEMO_WINDOW = Window(parse_instant("2026-11-20T23:51:40Z"), parse_instant("2026-11-20T23:59:40Z"))


def demo(config: Config, out: Path, now: datetime) -> Reported:
    """The bundled recording through every stage. The lake stands in ``out/lake``."""
    with_facts = config.report.model_copy(update={"facts": True})  # the cookbook's questions are answered from the one file
    own = config.model_copy(update={"lake": out / "lake", "cluster": DEMO_CLUSTER, "report": with_facts})
    _renew(out / "lake")
    import_files(own, [RECORDING / "metrics.openmetrics.txt.gz"], max(now, DEMO_WINDOW.end_at))
    compute(own, DEMO_WINDOW.start_at.date())
    return report(own, DEMO_WINDOW, out, now)


def _renew(lake: Path) -> None:
    """Bring a lake that an older version left to this one's form; nobody has to migrate a demo."""
    if lake.exists():
        migrate(lake)


def demo_month(config: Config, out: Path, now: datetime, days: int = 30, gpus: int = 24) -> Reported:
    """A simulated month through compute and report; ``truth.json`` says what was planted."""
    from gpureport.simulate import fill_lake, review_plan, write_truth

    plan = review_plan(gpus, days, DEMO_MONTH)
    own = config.model_copy(update={"lake": out / "lake", "cluster": "simulated"})
    _renew(out / "lake")
    with out_errors(out):
        fill_lake(plan, own.lake, own.cluster)
        write_truth(plan, out)
    with progress_bar("compute a month") as progress:
        for number, day in enumerate(plan.dates):
            compute(own, day)
            progress(number + 1, plan.days)
    return report(own, plan.window, out, now)


def simulate(config: Config, asked: Mapping[str, Any], out: Path | None, lake: Place | None, today: date) -> list[Place]:
    """A synthetic cluster as files, as a lake, or both; what was written."""
    # Imported here: no other command should wait for it.
    from gpureport.simulate import SimulationPlan, choose_signals, fill_lake, write_kubernetes, write_openmetrics, write_truth

    start = parse_date(asked["start"]) if asked["start"] else today - timedelta(days=asked["days"])
    chosen = {name: found for name, found in asked.items() if name not in ("start", "signals")}
    plan = SimulationPlan(start_date=start, signals=choose_signals(asked["signals"]), **chosen)
    written: list[Place] = []
    if out is not None:
        with out_errors(out):
            written += [*write_openmetrics(plan, out), *write_kubernetes(plan, out), write_truth(plan, out)]
    if lake is not None:
        fill_lake(plan, lake, config.cluster)
        written.append(lake)
    return written
