"""The first change of CONTRIBUTING.md, made in a copy of the tree: one row of the catalog, and a new metric is in the report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
METRIC = "board_thermistor_kelvin_offset"
NOON = 1_795_176_000


def test_a_row_of_the_catalog_is_a_metric_of_the_report(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for part in ("gpureport", "queries", "templates"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "queries/catalog/signal.csv").open("a", encoding="utf-8") as catalog:
        catalog.write(f"{METRIC},,gpu_temp_celsius,0.5,gauge,board,,nvidia,my-exporter,1.0-,,,a test\n")
    lines = [
        f'{metric}{{UUID="GPU-1",Hostname="n",namespace="ns",pod="p",container="c"}} {value} {NOON + 60 * minute}'
        for minute in range(60)
        for metric, value in ((METRIC, 82), ("DCGM_FI_DEV_GPU_UTIL", 50))
    ]
    (tmp_path / "metrics.txt").write_text("\n".join([*sorted(lines), "# EOF", ""]))
    lake = ["--lake", str(tmp_path / "lake")]
    asked = "select gpu_temp_celsius_avg as average, source_metrics['gpu_temp_celsius'] as metric from report.device"
    commands = [
        ["import", str(tmp_path / "metrics.txt"), *lake],
        ["compute", "--date", "2026-11-20", *lake],
        ["sql", asked, "--since", "2026-11-20T12:00Z", "--until", "2026-11-20T13:00Z", *lake, "-o", "json"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", f"from gpureport.cli import main\nfor each in {commands!r}: assert main(each, environ={{}}) == 0"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "NUMBA_DISABLE_JIT": "1"},  # the copy has no machine code of its loops
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout[done.stdout.index("[\n") :]) == [{"average": 41.0, "metric": METRIC}]
