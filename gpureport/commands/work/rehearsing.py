"""Reports without a cluster: of the bundled recording, a simulated month, or simulated clusters of any size."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpureport.commands.work.delivering import out_errors
from gpureport.commands.work.observing import import_files, import_state
from gpureport.commands.work.reporting import Reported, compute, report
from gpureport.config import Config
from gpureport.config.meaning import Notify
from gpureport.lake.migrate import migrate
from gpureport.store import Place
from gpureport.values.runtime.resources import RECORDING
from gpureport.values.window import Window, day_start, parse_date, parse_instant

_LOG = logging.getLogger(__name__)
DEMO_CLUSTER = "h200-recording"
DEMO_END = date(2026, 11, 1)
DEMO_WINDOW = Window(parse_instant("2026-11-20T23:51:40Z"), parse_instant("2026-11-20T23:59:40Z"))


def demo(config: Config, out: Path, now: datetime) -> Reported:
    """Run the bundled recording through every stage. The lake is ``out/lake``."""
    # With facts, so that one file answers the cookbook's questions. A demo sends no notifications.
    quiet = config.report.model_copy(update={"facts": True, "notify": Notify()})
    own = config.model_copy(update={"lake": out / "lake", "cluster": DEMO_CLUSTER, "report": quiet})
    _migrate_if_there(out / "lake")
    import_files(own, [RECORDING / "metrics.openmetrics.txt.gz"], max(now, DEMO_WINDOW.end_at))
    compute(own, [DEMO_WINDOW.start_at.date()])
    return report(own, DEMO_WINDOW, out, now)


def _migrate_if_there(lake: Path) -> None:
    """Migrate the demo's lake of an older version, so that a demo needs no separate migration."""
    if lake.exists():
        migrate(lake)


def demo_cluster(config: Config, out: Path, now: datetime, days: int = 7, gpus: int = 56) -> Reported:
    """Report by team on the last days of a simulated cluster with prices, quotas and known problems; as many days come before.

    ``truth.json`` lists the simulated problems.
    """
    from gpureport.simulate import demo_plan, fill_lake, write_states, write_truth

    plan = demo_plan(gpus, 2 * days, DEMO_END - timedelta(days=2 * days))
    own = config.model_copy(update={"lake": out / "lake", "cluster": "demo", **_demo_settings(config)})
    _migrate_if_there(out / "lake")
    _LOG.info(f"simulating {gpus} GPUs for {2 * days} days")
    with out_errors(out):
        fill_lake(plan, own.lake, own.cluster)
        write_truth(plan, out)
    with TemporaryDirectory() as folder:
        for observed_at, state in write_states(plan, Path(folder)):
            import_state(own, state, observed_at, max(now, observed_at))
    _LOG.info(f"computing {plan.days} days")
    for number in range(0, plan.days, 14):
        compute(own, plan.dates[number : number + 14])
    _LOG.info(f"writing the report of {days} days")
    return report(own, Window(day_start(DEMO_END - timedelta(days=days)), day_start(DEMO_END)), out, now)


def _demo_settings(config: Config) -> dict[str, Any]:
    """Return example prices and carbon factors, and settings for a page per team."""
    by_model = {"NVIDIA H200": 3.6, "NVIDIA H100 80GB HBM3": 2.5, "NVIDIA A100-SXM4-80GB": 1.6, "NVIDIA L40S": 0.9}
    return {
        "prices": config.prices.model_copy(update={"gpu_hour": by_model, "kwh": 0.21, "currency": "$"}),
        "carbon": config.carbon.model_copy(update={"pue": 1.3, "grams_per_kwh": 380.0}),
        "report": config.report.model_copy(update={"by": "namespace", "facts": True, "notify": Notify()}),
    }


def simulate(config: Config, options: Mapping[str, Any], out: Path | None, lake: Place | None, today: date) -> list[Place]:
    """Write a synthetic cluster as files, as a lake, or both; return the written paths."""
    # Slow to import, and only used here.
    from gpureport.simulate import SimulationPlan, choose_signals, fill_lake, write_kubernetes, write_openmetrics, write_truth

    start = parse_date(options["start"]) if options["start"] else today - timedelta(days=options["days"])
    chosen = {name: found for name, found in options.items() if name not in ("start", "signals")}
    signals = choose_signals(options["signals"])
    # With finished pods listed for ever, each day of a month would be larger than the day before.
    plan = SimulationPlan(start_date=start, signals=signals, finished_listed_hours=24, **chosen)
    written: list[Place] = []
    if out is not None:
        with out_errors(out):
            written += [*write_openmetrics(plan, out), *write_kubernetes(plan, out), write_truth(plan, out)]
    if lake is not None:
        fill_lake(plan, lake, config.cluster)
        written.append(lake)
    return written
