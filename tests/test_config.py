"""Configuration: file, environment, flags; what is misspelt or out of range is said and not ignored."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.config import Config, load_config
from gpureport.store import ObjectAddress
from gpureport.values.errors import UsageError


def load(toml: str = "", environ: dict[str, str] | None = None, tmp: Path | None = None, **flags: object) -> Config:
    path = None
    if tmp is not None:
        path = tmp / "gpureport.toml"
        path.write_text(toml)
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return load_config(path, environ or {}, dotted)[0]


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    toml = 'cluster = "file"\n[saturation]\nmemory_threshold_ratio = 0.5\n[compute]\nthreads = 3\n'
    environ = {"GPUREPORT_CLUSTER": "environment", "GPUREPORT_SATURATION__MEMORY_THRESHOLD_RATIO": "0.6"}
    config = load(toml, environ, tmp_path, cluster="flag")
    assert (config.cluster, config.saturation.memory_threshold_ratio, config.compute.threads) == ("flag", 0.6, 3)


def test_links_are_by_model_and_can_be_set_in_the_environment_as_json(tmp_path: Path) -> None:
    in_file = load('[links."NVIDIA H200"]\npcie_bytes_per_second = 63e9', None, tmp_path).links["NVIDIA H200"]
    assert (in_file.pcie_bytes_per_second, in_file.nvlink_bytes_per_second) == (63e9, None)
    environ = {"GPUREPORT_LINKS": '{"NVIDIA A10": {"nvlink_bytes_per_second": 450e9}}'}
    assert load(environ=environ).links["NVIDIA A10"].nvlink_bytes_per_second == 450e9


def test_a_flag_that_was_not_given_leaves_the_file_alone(tmp_path: Path) -> None:
    assert load('cluster = "file"', None, tmp_path, cluster=None).cluster == "file"


def test_a_byte_order_mark_before_the_first_line_is_no_text(tmp_path: Path) -> None:
    assert load('\ufeffcluster = "file"', None, tmp_path).cluster == "file"


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ("clutser = 'x'", "clutser"),
        ("[saturation]\nmemory_treshold = 0.9", "saturation.memory_treshold"),
        ("[saturation]\nmemory_threshold_ratio = 0", "saturation.memory_threshold_ratio"),
        ("[saturation]\nmemory_threshold_ratio = 90", "saturation.memory_threshold_ratio"),
        ("[prometheus]\nread_path = 'guess'", "prometheus.read_path"),
        ("saturation = 1", "saturation"),
        ('[links."NVIDIA H200"]\npcie_bytes_per_second = 0', "links.NVIDIA H200.pcie_bytes_per_second"),
        ('[links."NVIDIA H200"]\npcie_gigabytes = 63', "links.NVIDIA H200.pcie_gigabytes"),
        ("[export", "not valid TOML"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, toml: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        load(toml, None, tmp_path)


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        (
            '[retention]\nkeep_samples = "3x"',
            "retention.keep_samples = '3x': write days, weeks or years, as 30d, 8w or 1y, up to 9999d or 99y",
        ),
        ('[compute]\nmemory_limit = "much"', "compute.memory_limit = 'much': write a size, as 800MB, 2GiB or 60%"),
        ("lake = 5", "lake = 5: write a folder, or s3://BUCKET/PREFIX"),
        ('out = ""', "out = '': write a folder, or s3://BUCKET/PREFIX"),
        ('[[suppressions]]\ncode = "GR101"', "suppressions.0.until is missing"),
        (
            '[[suppressions]]\ncode = "GR9"\nuntil = 2027-01-01\nreason = "known"',
            "suppressions.0.code = 'GR9': GR9 is not the code of a finding",
        ),
    ],
)
def test_what_is_wrong_is_told_with_how_to_write_it(tmp_path: Path, toml: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(toml, None, tmp_path)
    assert str(refused.value) == f"configuration: {told}"


def test_credentials_in_the_pushgateways_address_are_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"metrics\.http_config_file") as refused:
        load('[metrics]\npushgateway_url = "http://me:hunter2@gateway:9091"', None, tmp_path)
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="check --config"):
        load_config(tmp_path / "nothing.toml", {}, {})


def test_an_unknown_name_in_the_environment_is_an_error() -> None:
    with pytest.raises(UsageError, match="sturation"):
        load(environ={"GPUREPORT_STURATION__ENABLED": "false"})


@pytest.mark.parametrize(("text", "enabled"), [("true", True), ("false", False), ("0", False), ("1", True)])
def test_the_seeds_switch_is_honoured(text: str, enabled: bool) -> None:
    assert load(environ={"GPU_SATURATION_METRICS_ENABLED": text}).saturation.enabled is enabled


def test_the_seeds_threshold_is_honoured() -> None:
    assert load(environ={"GPU_MEMORY_SATURATION_THRESHOLD": "0.75"}).saturation.memory_threshold_ratio == 0.75


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "nan", "ninety", ""])
def test_the_seeds_threshold_out_of_range_falls_back_with_a_warning(text: str) -> None:
    config, warnings = load_config(None, {"GPU_MEMORY_SATURATION_THRESHOLD": text}, {})
    assert config.saturation.memory_threshold_ratio == 0.9
    assert len(warnings) == 1
    assert "GPU_MEMORY_SATURATION_THRESHOLD" in warnings[0]


def test_our_own_name_wins_over_the_seeds() -> None:
    environ = {"GPU_MEMORY_SATURATION_THRESHOLD": "0.75", "GPUREPORT_SATURATION__MEMORY_THRESHOLD_RATIO": "0.8"}
    assert load(environ=environ).saturation.memory_threshold_ratio == 0.8


def test_lists_and_tables_may_come_from_the_environment() -> None:
    row = '[{"metric": "m", "signal": "power_watts", "factor": "1", "kind": "gauge", "scope": "board"}]'
    config = load(environ={"GPUREPORT_SIGNALS": row, "GPUREPORT_PROMETHEUS__MATCH": '{"tenant": "a"}'})
    assert config.signals[0]["metric"] == "m"
    assert config.prometheus.match == {"tenant": "a"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[prometheus]\npassword_file = 'x'", "prometheus.password_file was removed: write it into promtool's HTTP client file"),
        ("[[clusters]]\nname = 'a'\nprometheus.headers = {}", "clusters.0.prometheus.headers was removed: write it into"),
        ("[thresholds]\nio_sm_ratio = 0.2", "thresholds.io_sm_ratio was removed: leave it out"),
        ("[thresholds]\nwait_pods_min = 3", "thresholds.wait_pods_min was removed: leave it out"),
        ("[kubernetes]\nread_timeout_seconds = 3", "kubernetes.read_timeout_seconds was removed: leave it out"),
        ("[[clusters]]\nname = 'a'\nkubernetes.retries = 3", "clusters.0.kubernetes.retries was removed: leave it out"),
        ("[object_store]\nregion = 'eu'", "object_store.region was removed: set AWS_REGION in the environment"),
        ("[object_store]\nca_file = 'a.pem'", "object_store.ca_file was removed: set AWS_CA_BUNDLE in the environment"),
        ("[prometheus]\ncache = 1", "unknown key 'prometheus.cache'"),
        ("[object_store]\nprofile = 'night'", "object_store.profile was removed: set AWS_PROFILE in the environment"),
        ("[report.notify]\nsmtp_username = 'a'", "report.notify.smtp_username was removed: write USER:PASSWORD into a file"),
        ("[compute]\nrecompute_minutes = 5", "compute.recompute_minutes was removed: leave it out"),
    ],
)
def test_a_key_of_an_earlier_version_says_what_replaces_it(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "gpureport.toml").write_text(text)
    with pytest.raises(UsageError, match=words):
        load_config(tmp_path / "gpureport.toml", {}, {})


def test_ca_certificates_that_are_not_there_are_refused_where_they_are_needed(tmp_path: Path) -> None:
    environ = {"AWS_CA_BUNDLE": str(tmp_path / "ca.pem")}
    assert load_config(None, environ, {})[0].lake == Path("lake")
    with pytest.raises(UsageError, match=r"AWS_CA_BUNDLE = .*: this file is not there"):
        load_config(None, environ, {"lake": "s3://bucket/lake"})
    (tmp_path / "ca.pem").write_text("")
    lake = load_config(None, environ, {"lake": "s3://bucket/lake"})[0].lake
    assert isinstance(lake, ObjectAddress)
    assert lake.reach.ca_file == str(tmp_path / "ca.pem")


def test_the_configuration_travels_to_worker_processes() -> None:
    assert pickle.loads(pickle.dumps(Config())) == Config()


@given(st.floats())
def test_no_threshold_outside_its_range_ever_gets_in(threshold: float) -> None:
    if 0 < threshold <= 1:
        assert load(saturation__memory_threshold_ratio=threshold).saturation.memory_threshold_ratio == threshold
    else:
        with pytest.raises(UsageError):
            load(saturation__memory_threshold_ratio=threshold)


def test_the_lake_is_a_place_or_a_section(tmp_path: Path) -> None:
    assert not load('lake = "a"', None, tmp_path).lake_delta
    for text, environ in (('lake = {place = "a", delta = true}', {}), ("lake.delta = true", {"GPUREPORT_LAKE": "a"})):
        found = load(text, environ, tmp_path)
        assert (found.lake, found.lake_delta) == (Path("a"), True)
    assert load("", {"GPUREPORT_LAKE__DELTA": "true"}, tmp_path, lake="b").lake_delta
    with pytest.raises(UsageError, match="unknown key 'lake_form'"):
        load('lake.form = "iceberg"', None, tmp_path)
