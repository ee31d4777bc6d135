"""One Prometheus with every small cluster at its own instant, and the command run against it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import requests
from prometheus.programs import fill_blocks, program, prometheus, victoria_metrics

from gpureport.cli import main

from .clusters import CLUSTERS, INSTANTS, texts


@dataclass(frozen=True)
class Told:
    """What the command said."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of JSON."""
        found: list[dict[str, Any]] = json.loads(self.out)
        return found

    def of(self, code: str) -> list[dict[str, Any]]:
        """The rows of a check."""
        return [row for row in self.rows if row["code"] == code]

    @property
    def losses(self) -> dict[str, tuple[str, ...]]:
        """Subject → figures, of what costs any."""
        return {row["subject"]: tuple(row["costs"]) for row in self.rows if row["status"] in ("missing", "partial")}

    @property
    def lines(self) -> list[str]:
        """Every line to add."""
        return [line for row in self.rows for remedy in row["add"] for line in remedy["lines"]]


Doctor = Callable[..., Told]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("doctor")
    fill_blocks(folder / "blocks", *texts())
    with prometheus(program("PROMETHEUS_BIN"), folder / "blocks", folder / "server") as url:
        yield url


@pytest.fixture(params=["Prometheus 3", "VictoriaMetrics"])
def other_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """What else speaks PromQL, with the two clusters that ask it the most."""
    chosen = [CLUSTERS[name].text(INSTANTS[name]) for name in ("no profiling on n2", "silent nodes")]
    if request.param == "Prometheus 3":
        fill_blocks(tmp_path / "blocks", *chosen)
        with prometheus(program("PROMETHEUS3_BIN"), tmp_path / "blocks", tmp_path / "server") as url:
            yield url
        return
    with victoria_metrics(tmp_path) as url:
        for text in chosen:  # its text format has times in milliseconds where OpenMetrics has seconds
            in_ms = re.sub(r"(?m) (\d+\.\d+)$", lambda found: f" {round(float(found[1]) * 1000)}", text)
            requests.post(f"{url}/api/v1/import/prometheus", in_ms.encode(), timeout=60).raise_for_status()
        requests.get(f"{url}/internal/force_flush", timeout=60).raise_for_status()
        yield url


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Run the command at an instant, away from any configuration file."""
    monkeypatch.chdir(tmp_path)

    def run(*flags: str, now: datetime, environ: Mapping[str, str] | None = None) -> Told:
        capsys.readouterr()  # what made the lake
        code = main(["doctor", *flags], environ=environ or {}, now=now)
        said = capsys.readouterr()
        return Told(code, said.out, said.err)

    return run


@pytest.fixture
def examined(doctor: Doctor, server: str) -> Callable[[str], Told]:
    """What the command says of a small cluster, as JSON."""
    return lambda name: doctor("--prometheus-url", server, "-o", "json", now=INSTANTS[name])
