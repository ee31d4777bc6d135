"""Every key and every flag with wrong values, alone and in pairs that belong together: exit code 2, or no harm."""

from __future__ import annotations

import json
import socket
import types
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import click
import pytest
from pydantic import BaseModel

from gpureport.cli import cli, main
from gpureport.commands.work.settings import compute_settings, report_settings
from gpureport.compute.query import connection
from gpureport.config import Config, load_config
from gpureport.lake import open_lake
from gpureport.values.errors import UsageError
from gpureport.values.window import age_ago

from .samples import DAY, NOW

WRONG: list[Any] = [
    True,
    [],
    ["x"],
    {},
    {"x": 1},
    "",
    "nonsense",
    "\x00",
    -1,
    0,
    10**400,
    1e300,
    float("inf"),
    float("nan"),
    "1KB",
]
HASTE = {"GPUREPORT_PROMETHEUS__READ_TIMEOUT_SECONDS": "0.2"}
TODAY = date(2026, 11, 21)


def keys(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, kind) of every setting below a section."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from keys(kind, (*above, name))
        else:
            yield (*above, name), kind


KEYS = dict(keys(Config))


def loaded(path: tuple[str, ...], value: Any) -> Config | None:
    """The configuration with one setting; None where it is refused in one sentence."""
    try:
        return load_config(None, {}, {".".join(path): value})[0]
    except UsageError as error:
        assert "\n" not in str(error)
        return None


def use(config: Config) -> None:
    """What commands do with settings that were taken."""
    with suppress(UsageError):
        report_settings(config)
    for age in (config.retention.keep_samples, config.retention.keep_facts):
        assert not age or age_ago(TODAY, age) < TODAY
    assert TODAY - timedelta(days=config.export.backfill_days + config.export.restate_days) < TODAY + timedelta(days=1)
    with socket.socket() as waiting:
        waiting.settimeout(config.prometheus.read_timeout_seconds * 5)
    use_memory(compute_settings(config).memory_limit)


@cache  # few settings change it
def use_memory(limit: str) -> None:
    with connection(limit, has_functions=False) as con:
        con.execute("select count(*) from range(100_000)")


@pytest.mark.parametrize("path", KEYS, ids=".".join)
def test_a_wrong_value_is_refused_or_does_no_harm(path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    default = Config()
    for value in WRONG:
        config = loaded(path, value)
        if config is None or config == default:
            continue
        kinds = set(get_args(KEYS[path])) if get_origin(KEYS[path]) in (Union, types.UnionType) else {KEYS[path]}
        assert not (isinstance(value, bool) and kinds & {int, float}), value
        assert not (isinstance(value, float) and not -1e308 < value < 1e308), value
        if path[0] in ("compute", "retention", "export", "prometheus", "kubernetes", "object_store", "carbon", "prices"):
            use(config)


OWN = "[[signals]]\nmetric = 'm'\nsignal = 'power_watts'\nscope = 'board'\n"
TOGETHER = {
    "credentials of the gateway that are not there": "[metrics]\nhttp_config_file = 'missing'",
    "half of the memory for too many threads": "[compute]\nmemory_limit = '1GB'\nthreads = 200",
    "a server that is a word": "[[clusters]]\nname = 'a'\nprometheus = 'http://x'",
    "a word for all servers": "prometheus = 'x'\n[[clusters]]\nname = 'a'",
    "yes for a section": "[[clusters]]\nname = 'a'\nkubernetes = true",
    "a list for a section": "kubernetes = ['x']\n[[clusters]]\nname = 'a'",
    "a cluster without a name": "[[clusters]]\nname = ''",
    "a price without end": "[prices]\nkwh = inf",
    "a price of a model that is no number": "[prices.gpu_hour]\nall = nan",
    "yes for a price": "[prices]\nkwh = true",
    "yes for a price from a day": "[prices.gpu_hour]\nall = { 2026-01-01 = true }",
    "yes for a budget": "[prices.budgets]\nred = true",
    "yes for watts": "[power.idle_watts]\nH200 = true",
    "a price from no day": "[prices.gpu_hour]\nall = { soon = 2 }",
    "a price without any day": "[prices.gpu_hour]\nall = {}",
    "a budget below 0": "[prices.budgets]\nred = -1",
    "grams with their unit": "[carbon]\ngrams_per_kwh = '380 g'",
    "grams below 0": "[carbon]\ngrams_per_kwh = -5",
    "a CSV that is not there": "[carbon]\ngrams_per_kwh = 'missing.csv'",
    "a label with a blank": "[prometheus.match]\n'a b' = 'x'",
    "an own signal whose factor is no number": f"{OWN}factor = 'nan'\nkind = 'gauge'",
    "an own signal whose factor is 0": f"{OWN}factor = '0'\nkind = 'gauge'",
    "an own counter of watts": f"{OWN}kind = 'counter'",
    "an own signal per nothing": f"{OWN}kind = 'counter'\nper = 'no such'",
    "an own signal of an unknown kind": f"{OWN}factor = '1'\nkind = 'guage'",
}


@pytest.mark.parametrize("text", TOGETHER.values(), ids=TOGETHER)
def test_settings_that_do_not_go_together_end_a_run_before_anything_is_asked(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpureport.toml").write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert main(["run", "--prometheus-url", url, "--no-kubernetes"], environ={"PASSWORD": "x", **HASTE}, now=NOW) == 2
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["run", "--prometheus-url", "http://127.0.0.1:9", "--out", "file"], "is a file"),
        (["report", "--since", "2026-11-20", "--lake", "lake", "--out", "lake"], "belongs to the lake at"),
        (["report", "--since", "2026-11-20", "--lake", "lake", "--out", "lake/facts"], "belongs to the lake at"),
        (["report", "--since", "2026-11-20", "--salt-file", "file"], "--anonymise"),
        (["demo", "--gpus", "30"], "--simulated"),
        (["run", "--fail-on", "zzz", "--prometheus-url", "http://127.0.0.1:9"], "--fail-on"),
        (["prune", "--keep-samples", "9999y"], "99y"),
    ],
)
def test_flags_that_cannot_be_are_refused(
    arguments: list[str], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    assert main(arguments, environ={}, now=NOW) == 2
    assert word in capsys.readouterr().err


TYPED = [
    (name, option.opts[0])
    for name in cli.list_commands(click.Context(cli))
    for option in cli.get_command(click.Context(cli), name).params  # type: ignore[union-attr]
    if isinstance(option, click.Option)
    and isinstance(option.type, click.types.IntParamType | click.types.FloatParamType | click.Choice)
]


@pytest.mark.parametrize(("command", "flag"), TYPED, ids=map(" ".join, TYPED))
def test_a_flag_of_another_kind_is_refused(command: str, flag: str) -> None:
    assert main([command, flag, "nonsense"], environ={}, now=NOW) == 2


ENOUGH = {
    "export": ["--date", DAY, "--prometheus-url", "http://127.0.0.1:9", "--no-kubernetes", "--lake", "new"],
    "compute": ["--date", DAY, "--lake", "none"],
    "diff": ["--since", DAY, "--lake", "none"],
    "report": ["--since", DAY, "--lake", "none"],
    "run": ["--date", DAY, "--prometheus-url", "http://127.0.0.1:9", "--no-kubernetes", "--lake", "new"],
    "top": ["teams"],
    "sql": ["select 1"],
    "whatif": ["--since", DAY, "--nodes", "+1"],
    "doctor": ["--prometheus-url", "http://127.0.0.1:9"],
    "demo": ["--gpus", "30"],
    "simulate": ["--gpus", "1", "--step-seconds", "3600"],
    "prune": ["--dry-run"],
    "migrate": ["--dry-run"],
}
"""What else a command must be told; demo, compute, diff and report stop before they begin."""
ODD = ["", "nonsense", "-1", "inf", "9" * 400, "9999-12-31", "a=b=c", "\u202e"]


@pytest.mark.parametrize("command", cli.list_commands(click.Context(cli)))
def test_no_value_of_a_flag_is_a_crash(
    command: str, lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the day's lake, an ill-reached server and nothing of Kubernetes: an exit code of the contract, and no stack."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gpureport.cli.discard_output", lambda: None)  # the process is the tests'
    asked = cli.get_command(click.Context(cli), command).params  # type: ignore[union-attr]
    given = ENOUGH.get(command, [])
    if any(each.name == "lake" for each in asked) and "--lake" not in given:
        given = [*given, "--lake", str(lake)]
    for option in asked:
        if isinstance(option, click.Option) and not option.is_flag:
            for value in ODD:
                assert main([command, *given, option.opts[-1], value], environ=HASTE, now=NOW) in range(6), (option.opts, value)
    assert "Traceback" not in capsys.readouterr().err


def test_a_name_that_matches_no_gpu_is_a_warning_and_of_a_long_window_it_is_said_how_little_is_there(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two years, of which one day was imported; the second has only begun: 20 November to 21 November are 367 days. Its samples
    are gone: facts made with other settings are what there is."""
    opened = open_lake(lake)
    opened.remove(opened.partitions("device_sample"))
    file = tmp_path / "prices.toml"
    file.write_text("[prices.gpu_hour]\n'NVIDIA-H200' = 3.6\nall = 1.2\n[power.idle_watts]\n'GPU-gone' = 50\n")
    flags = ["--since", "2025-11-20", "--until", "2027-11-20", "--lake", str(lake), "--out", str(tmp_path / "out")]
    assert main(["--config", str(file), "report", *flags, "--only", "html"], environ={}, now=NOW) == 0
    printed = capsys.readouterr().err
    assert "warning: prices.gpu_hour names 'NVIDIA-H200', which is no GPU of the period" in printed
    assert "warning: power.idle_watts names 'GPU-gone'" in printed
    assert "the lake has 1 of the period's 367 UTC days" in (tmp_path / "out" / "summary.md").read_text()


def test_flags_and_environment_go_over_the_entry_of_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "gpureport.toml"
    file.write_text('[[clusters]]\nname = "a"\nprometheus.url = "http://file:1"\n')
    flags, environ = {"prometheus.url": "http://flag:1"}, {"GPUREPORT_PROMETHEUS__URL": "http://environment:1"}
    assert load_config(file, environ, {})[0].each_cluster()[0].prometheus.url == "http://environment:1"
    assert load_config(file, environ, flags)[0].each_cluster()[0].prometheus.url == "http://flag:1"
    file.write_text(file.read_text() + '[[clusters]]\nname = "b"\nprometheus.url = "http://file:2"\n')
    with pytest.raises(UsageError, match="add --cluster NAME"):
        load_config(file, environ, {})
    [chosen] = load_config(file, {}, {**flags, "cluster": "b"})[0].each_cluster()
    assert (chosen.cluster, chosen.prometheus.url) == ("b", "http://flag:1")


def test_a_section_in_the_environment_joins_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "gpureport.toml").write_text("[prices]\nkwh = 0.2\n")
    environ = {"GPUREPORT_PRICES": json.dumps({"gpu_hour": {"NVIDIA H200": 3}})}
    prices = load_config(tmp_path / "gpureport.toml", environ, {})[0].prices
    assert (prices.kwh, prices.gpu_hour) == (0.2, {"NVIDIA H200": 3.0})


def test_run_takes_the_flags_that_the_chart_names(tmp_path: Path) -> None:
    """values.yaml shows extraArgs of run; the time is before 1970, so nothing but the arguments is looked at."""
    flags = [
        "--min-coverage",
        "0.9",
        "--fail-on",
        "critical",
        "--by",
        "team",
        "--figure-min-coverage",
        "0.5",
        "--idle-policy",
        "pool",
    ]
    early = datetime(1970, 1, 1, tzinfo=UTC)
    assert main(["run", "--date", "2026-11-20", *flags], environ={}, now=early) == 2
