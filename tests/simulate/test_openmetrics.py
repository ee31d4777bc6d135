import gzip
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gpureport.cli import main
from gpureport.simulate import SimulationPlan, simulate_batches, write_openmetrics
from gpureport.values.series import concatenate
from tests.simulate.conftest import series_of


@pytest.fixture(scope="module")
def small(plan: SimulationPlan) -> SimulationPlan:
    return replace(plan, gpus=8, step_seconds=1200, kube_state_step_seconds=3600)


def _text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def _samples(paths: list[Path]) -> dict[tuple[str, frozenset[tuple[str, str]], int], float]:
    """Every sample as an independent parser reads it, by metric, labels and milliseconds."""
    return {
        (sample.name, frozenset(sample.labels.items()), round(float(sample.timestamp) * 1000)): sample.value
        for path in paths
        for family in text_string_to_metric_families(_text(path))
        for sample in family.samples
    }


def test_an_independent_parser_reads_exactly_the_simulated_samples(small: SimulationPlan, tmp_path: Path) -> None:
    sparse = replace(small, days=1, step_seconds=3600)  # the parser takes a second for 4,000 samples
    read = _samples(write_openmetrics(sparse, tmp_path))
    made = {}
    for each in series_of(concatenate(list(simulate_batches(sparse)))):
        name, labels = each.labels.pop("__name__"), frozenset(each.labels.items())
        made |= {(name, labels, time): value for time, value in each.points().items()}
    assert len(read) > 3_000
    assert read == made


def test_a_file_a_day_with_each_metric_once_and_an_end_and_the_same_bytes_again(small: SimulationPlan, tmp_path: Path) -> None:
    paths, again = (write_openmetrics(small, tmp_path / name) for name in ("a", "b"))
    assert sorted((tmp_path / "a").iterdir()) == sorted(paths)
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    assert [path.name for path in paths] == [f"metrics-2026-11-{day}.openmetrics.txt.gz" for day in (18, 19)]
    for path in paths:
        lines = _text(path).splitlines()
        types = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
        assert types == sorted(set(types))
        assert lines[-1] == "# EOF"
        families = [line.partition("{")[0] for line in lines if not line.startswith("#")]
        assert list(dict.fromkeys(families)) == types


def test_an_output_folder_below_a_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    asked = ["simulate", "--gpus", "1", "--days", "1", "--out", str(tmp_path / "file" / "out")]
    assert main(asked, {}, datetime(2026, 11, 21, tzinfo=UTC)) == 1
    assert "cannot be written (Not a directory)" in capsys.readouterr().err
