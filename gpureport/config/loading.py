"""The whole ``Config`` from one TOML file, ``GPUREPORT_SECTION__KEY`` in the environment, and flags. It is frozen; flags win.

Unknown keys are errors: a misspelt threshold that is silently ignored would lead to a wrong number.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource

from gpureport.config import meaning
from gpureport.config.findings import Suppression, Thresholds
from gpureport.config.section import ClusterName, Section, existing
from gpureport.config.servers import ClusterSource, Export, Kubernetes, Metrics, Prometheus, Retention
from gpureport.store import ObjectAddress, Place, Reach, parse_place
from gpureport.values.errors import UsageError
from gpureport.values.text.log import LogFormat


def _place(given: object) -> Place:
    if not isinstance(given, str | Path | ObjectAddress) or given == "":
        raise ValueError("write a folder, or s3://BUCKET/PREFIX")
    return parse_place(given)


ConfiguredPlace = Annotated[Place, BeforeValidator(_place)]
"""A folder or an address; a text may name either."""


def _without_secrets(url: str) -> str:
    """Return the URL of a host. The error does not repeat a wrong URL, because it may contain a secret."""
    if not re.fullmatch(r"(https?://[^@/?#\s]+/?)?", url):
        raise UsageError("object_store.endpoint_url is http(s)://HOST[:PORT], without credentials and path; correct it")
    return url


class ObjectStore(Section):
    """Connection to the storage; credentials come from the environment, a profile or a role."""

    endpoint_url: Annotated[str, AfterValidator(_without_secrets)] = ""

    def reach(self, environ: Mapping[str, str]) -> Reach:
        """Return these settings with those of the environment: credentials, CA certificates, and the folder of cached copies."""
        caches = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "/") / ".cache"
        ca_file = existing("AWS_CA_BUNDLE", environ.get("AWS_CA_BUNDLE", ""))
        return Reach(self.endpoint_url, ca_file, cache=Path(caches) / "gpureport", environ=dict(environ))


class Config(Section):
    """All settings; each section is documented in docs/operations.md."""

    cluster: ClusterName = "default"
    log_format: LogFormat = "text"
    lake: ConfiguredPlace = Path("lake")
    lake_delta: bool = False
    out: ConfiguredPlace = Path("out")
    object_store: ObjectStore = ObjectStore()
    saturation: meaning.Saturation = meaning.Saturation()
    prometheus: Prometheus = Prometheus()
    kubernetes: Kubernetes = Kubernetes()
    export: Export = Export()
    power: meaning.Power = meaning.Power()
    quota: meaning.QuotaSystems = meaning.QuotaSystems()
    owners: meaning.Owners = meaning.Owners()
    prices: meaning.Prices = meaning.Prices()
    carbon: meaning.Carbon = meaning.Carbon()
    compute: meaning.Compute = meaning.Compute()
    metrics: Metrics = Metrics()
    retention: Retention = Retention()
    clusters: tuple[ClusterSource, ...] = ()
    report: meaning.Report = meaning.Report()
    thresholds: Thresholds = Thresholds()
    suppressions: tuple[Suppression, ...] = ()
    retired: tuple[meaning.Retired, ...] = ()
    signals: tuple[dict[str, str], ...] = ()
    labels: dict[str, str] = Field({})
    links: dict[str, meaning.Link] = Field({})

    def reached(self, environ: Mapping[str, str]) -> Config:
        """Return the same configuration, with the environment's settings for object storage."""
        return self.model_copy(update={name: self.reached_place(getattr(self, name), environ) for name in ("lake", "out")})

    def reached_place(self, place: Place, environ: Mapping[str, str]) -> Place:
        """Return a folder unchanged, and an address with its settings for object storage."""
        if isinstance(place, ObjectAddress):
            return replace(place, reach=self.object_store.reach(environ))
        return place

    def each_cluster(self) -> list[Config]:
        """Return a configuration per cluster of ``clusters``, or only for ``cluster``; without ``clusters``, return itself."""
        if not self.clusters:
            return [self]
        names = [each.name for each in self.clusters]
        if "cluster" in self.model_fields_set and self.cluster not in names:
            raise UsageError(f"no cluster {self.cluster!r} is configured; the configuration has {', '.join(names)}")
        chosen = [each for each in self.clusters if "cluster" not in self.model_fields_set or each.name == self.cluster]
        return [
            self.model_copy(update={"cluster": each.name, "prometheus": each.prometheus, "kubernetes": each.kubernetes})
            for each in chosen
        ]


PREFIX = "GPUREPORT_"
_ADDRESSES = {"prometheus": ("url",), "kubernetes": ("kubeconfig", "context")}
"""Settings that select one server."""
DEFAULT_FILE = Path("gpureport.toml")
_SEED_ENABLED = "GPU_SATURATION_METRICS_ENABLED"
_SEED_THRESHOLD = "GPU_MEMORY_SATURATION_THRESHOLD"


def load_config(
    path: Path | None, environ: Mapping[str, str], flags: Mapping[str, Any], only: Sequence[str] = ()
) -> tuple[Config, list[str]]:
    """Return the configuration and its warnings.

    A double underscore in a flag's name is the dot of a section; a flag of None counts as absent. With ``only``, no other keys
    are read. UsageError for an unknown key, a value out of range, or a file that is missing or not TOML.
    """
    values = _with_lake_apart(_read_file(path))
    seed, warnings = _seed_names(environ)
    over = _joined(_joined(seed, _Environment(environ)()), _sections(flags))
    values = {name: value for name, value in _joined(values, over).items() if not only or name in only}
    _complete_clusters(values, over)
    try:
        return Config.model_validate(values).reached(environ), warnings
    except ValidationError as error:
        raise UsageError(f"configuration: {_first_problem(error)}") from None


def _with_lake_apart(values: dict[str, Any]) -> dict[str, Any]:
    """Replace a table ``lake`` by two settings, ``lake`` (its place) and ``lake_delta``; a ``lake`` without keys is the place."""
    lake = values.get("lake")
    if not isinstance(lake, dict):
        return values
    apart = {"lake" if name == "place" else f"lake_{name}": value for name, value in lake.items()}
    return {name: value for name, value in values.items() if name != "lake"} | apart


def _joined(values: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values, overridden by others section by section."""
    if wrong := [name for name, value in over.items() if isinstance(value, dict) and not isinstance(values.get(name, {}), dict)]:
        raise UsageError(f"configuration: {wrong[0]!r} is not a section")
    return values | {
        name: _joined(values[name], value) if isinstance(value, dict) and isinstance(values.get(name), dict) else value
        for name, value in over.items()
    }


def _complete_clusters(values: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Complete each of ``clusters`` from the common sections; environment and flags override it.

    Kubernetes is read only for clusters that name it: otherwise every cluster would get the state of the job's own cluster.
    UsageError where environment or flags name one server for several clusters.
    """
    clusters = values.get("clusters")
    if not isinstance(clusters, list) or not all(isinstance(each, dict) for each in clusters):
        return  # pydantic refuses it
    sections = ("prometheus", "kubernetes")
    if any(not isinstance(each.get(name, {}), dict) for each in (values, *clusters) for name in sections):
        return
    given = {name: over.get(name, {}) for name in sections}
    one_server = [f"{section}.{key}" for section, keys in _ADDRESSES.items() for key in keys if key in given[section]]
    if one_server and len(clusters) > 1 and "cluster" not in over:
        raise UsageError(f"{one_server[0]} is given for {len(clusters)} clusters of the configuration; add --cluster NAME")
    names = [each.get("name") for each in clusters]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"configuration: two clusters are named {twice[0]!r}")
    for each in clusters:
        each["prometheus"] = {**values.get("prometheus", {}), **each.get("prometheus", {}), **given["prometheus"]}
        has_kubernetes = "kubernetes" in each or any(key in given["kubernetes"] for key in _ADDRESSES["kubernetes"])
        own = each.get("kubernetes", {}) if has_kubernetes else {"enabled": False}
        each["kubernetes"] = {**values.get("kubernetes", {}), **own, **given["kubernetes"]}


def _read_file(path: Path | None) -> dict[str, Any]:
    """Read the TOML file; without a path, ``gpureport.toml`` in the current folder if it exists."""
    if path is None and not DEFAULT_FILE.exists():
        return {}
    chosen = path or DEFAULT_FILE
    try:
        return tomllib.loads(chosen.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{chosen} cannot be read ({error.strerror}); check --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{chosen} is not valid TOML: {error}") from None


class _Environment(EnvSettingsSource):
    """Settings of ``GPUREPORT_SECTION__KEY`` in an environment, including unknown keys."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        super().__init__(cast("type[BaseSettings]", Config), env_prefix=PREFIX, env_nested_delimiter="__")

    def _load_env_vars(self) -> dict[str, str | None]:
        own = {name.lower(): text for name, text in self._environ.items() if name.startswith(PREFIX)}
        return {name.replace("_lake__delta", "_lake_delta"): text for name, text in own.items()}

    def decode_complex_value(self, field_name: str, field: Any, value: Any) -> Any:
        """Return the value of a JSON list or table; other text unchanged, so that pydantic's error names its key."""
        try:
            return json.loads(value) if value[:1] in "[{" else value
        except ValueError:
            return value

    def __call__(self) -> dict[str, Any]:
        """Return sections and keys in the form of the file."""
        keys = {name.removeprefix(PREFIX.lower()).split("__")[0]: text for name, text in self.env_vars.items()}
        return {key: text for key, text in keys.items() if key not in Config.model_fields} | super().__call__()


def _seed_names(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return OpenCost's two settings. As in OpenCost, a threshold outside (0, 1] becomes 0.9; here with a warning."""
    found: dict[str, Any] = {}
    warnings = []
    if (enabled := environ.get(_SEED_ENABLED)) is not None:
        found["enabled"] = enabled
    if (text := environ.get(_SEED_THRESHOLD)) is not None:
        threshold = 0.0
        with suppress(ValueError):
            threshold = float(text)
        if not 0 < threshold <= 1:
            warnings.append(f"{_SEED_THRESHOLD}={text!r} is outside (0, 1]; {meaning.DEFAULT_MEMORY_THRESHOLD_RATIO} is used")
            threshold = meaning.DEFAULT_MEMORY_THRESHOLD_RATIO
        found["memory_threshold_ratio"] = threshold
    return {"saturation": found} if found else {}, warnings


def _sections(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return flags as sections; a flag of None is left out."""
    found: dict[str, Any] = {}
    for name, value in flags.items():
        if value is not None:
            *sections, key = name.replace("__", ".").split(".")
            reduce(lambda values, name: values.setdefault(name, {}), sections, found)[key] = value
    return found


_OF_PROMETHEUS = r"bearer_token_\w+|username|password_\w+|(ca|cert|key)_file|insecure_skip_verify|headers"
_REMOVED = {
    rf"(clusters\.\d+\.)?prometheus\.({_OF_PROMETHEUS})": "write it into promtool's HTTP client file of http_config_file",
    r"object_store\.credentials_file": "set AWS_SHARED_CREDENTIALS_FILE in the environment",
    r"object_store\.profile": "set AWS_PROFILE in the environment",
    r"object_store\.cache": "set XDG_CACHE_HOME in the environment",
    r"object_store\.region": "set AWS_REGION in the environment, or region in the profile",
    r"object_store\.ca_file": "set AWS_CA_BUNDLE in the environment",
    r"metrics\.(username|password_file)": "write it into promtool's HTTP client file of metrics.http_config_file",
    r"report\.notify\.smtp_(username|password_file)": "write USER:PASSWORD into a file, report.notify.smtp_login_file",
    r"(.*\.)?(kubernetes|object_store)\.read_timeout_seconds|kubernetes\.page_size": "leave it out",
    r".*\.(retries|connect_timeout_seconds|max_concurrency|recompute_minutes|boundness_seconds_min)": "leave it out",
    r"thresholds\.(compute_sm|io_sm|latency_engine|latency_sm|bandwidth_dram|counter_difference|hw_throttle|unnamed)_ratio"
    r"|thresholds\.(io_pcie_bytes_per_second|fit_hours_min|observed_seconds_min|wait_pods_min)": "leave it out",
}
"""Keys of previous versions, and their replacements."""
_KIND_OF_UNION = re.compile(r"dict\[")
"""Parts of a problem's location that are not keys."""


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"] if not _KIND_OF_UNION.match(str(part)))
    if problem["type"] == "extra_forbidden":
        if instead := next((text for key, text in _REMOVED.items() if re.fullmatch(key, where)), None):
            return f"{where} was removed: {instead}"
        return f"unknown key {where!r}; see docs/operations.md for those that exist"
    if problem["type"] == "missing":
        return f"{where} is missing"
    if problem["type"] == "dict_type":
        return f"{where} is a table: write [{where}] and its keys below it, as in docs/operations.md"
    text = (
        str(problem["ctx"]["error"]) if problem["type"] == "value_error" else f"{problem['msg'][0].lower()}{problem['msg'][1:]}"
    )
    given = problem["input"]
    shown = "" if isinstance(given, dict | list | BaseModel) else f" = {given!r}"  # a section may hold a secret
    return f"{where}{shown}: {text}" if where else text
