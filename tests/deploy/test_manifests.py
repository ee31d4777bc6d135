"""Chart and kustomizations: taken by Kubernetes 1.36, least privilege, one run at a time, and a configuration that loads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpureport.config import Config, load_config
from gpureport.store import ObjectAddress

from .rendering import CHART, Manifest, anew, chart, helm, http, kustomization, of_kind, refusals, toml

FULL: dict[str, Any] = {
    "cluster": "prod-eu",
    "image": {"digest": f"sha256:{'0' * 64}", "pullSecrets": ["a", "b"]},
    "storage": {"accessModes": ["ReadWriteMany"], "existingClaim": "lake"},
    "prometheus": {
        "bearerToken": {"secretName": "token"},
        "basicAuth": {"username": "me", "secretName": "basic"},
        "ca": {"configMapName": "ca"},
        "clientCertificate": {"secretName": "client"},
        "headers": {"X-Scope-OrgID": "team"},
        "match": {"tenant": "ml"},
    },
    "kubernetes": {"systems": dict.fromkeys(["nos", "schedulerPlugins", "kueue", "koordinator", "volcano", "kai"], True)},
    "config": {
        "prices": {"kwh": 0.21, "gpu_hour": {"NVIDIA H200": 3.6, "all": 1}},
        "thresholds": {"idle_ratio": 0.8},
        "export": {"backfill_days": 9},
        "report": {"fail_on": "critical"},
        "suppressions": [{"code": "GR101", "until": "2026-12-31", "reason": "warm", "namespace": "ml"}],
    },
    "podLabels": {"a": "b"},
    "podAnnotations": {"c": "d"},
    "nodeSelector": {"e": "f"},
    "tolerations": [{"key": "g", "operator": "Exists"}],
    "priorityClassName": "low",
    "networkPolicy": {"prometheus": {"to": [{"namespaceSelector": {}}]}, "extraEgress": [{"ports": [{"port": 8080}]}]},
}
PUBLISHED: dict[str, Any] = {
    "config": {"metrics": {"pushgateway_url": "http://pushgateway.monitoring:9091", "file": "/textfiles/gpureport.prom"}},
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "extraVolumes": [{"name": "textfiles", "hostPath": {"path": "/var/lib/node_exporter"}}],
    "extraVolumeMounts": [{"name": "textfiles", "mountPath": "/textfiles"}],
}
NAMESPACED: dict[str, Any] = {"kubernetes": {"namespaces": ["research", "serving"]}}
WITHOUT: dict[str, Any] = {"kubernetes": {"enabled": False}, "networkPolicy": {"enabled": False}, "rbac": {"create": False}}
OBJECTS: dict[str, Any] = {
    "objectStorage": {
        "lake": "s3://gpu-lake/prod",
        "report": "s3://gpu-lake/report",
        "endpointUrl": "https://minio.storage:9000",
        "credentials": {"secretName": "objects", "profile": "night"},
        "ca": {"configMapName": "objects-ca"},
    },
    "networkPolicy": {"objectStorage": {"ports": [9000]}},
}
ROLE: dict[str, Any] = {
    "objectStorage": {"lake": "s3://gpu-lake/prod", "region": "eu-central-1"},
    "prometheus": {"url": "https://aps-workspaces.eu-central-1.amazonaws.com/workspaces/ws-1", "identity": "aws"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/gpureport"}},
}
DASHBOARD: dict[str, Any] = {"dashboard": {"enabled": True}}
CHARTS = {"defaults": {}, "full": FULL, "namespaced": NAMESPACED, "without": WITHOUT, "objects": OBJECTS, "role": ROLE}
EVERYTHING = [*CHARTS, "kustomize base", "kustomize namespaced", "kustomize object-storage"]


def made(name: str) -> list[Manifest]:
    """One of everything."""
    return chart(CHARTS[name]) if name in CHARTS else kustomization(name.removeprefix("kustomize "))


@pytest.fixture(scope="module", params=EVERYTHING)
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return made(request.param)


def environment(manifests: list[Manifest]) -> dict[str, str]:
    """The environment of the first job's container."""
    return {each["name"]: each["value"] for each in pods(manifests)[0]["containers"][0].get("env", [])}


def pods(manifests: list[Manifest]) -> list[Any]:
    return [job["spec"]["jobTemplate"]["spec"]["template"]["spec"] for job in of_kind(manifests, "CronJob")]


def test_kubernetes_takes_every_manifest(tmp_path: Path) -> None:
    assert refusals([each for name in EVERYTHING for each in made(name)], tmp_path) == []


def test_what_kubernetes_would_not_take_is_noticed(tmp_path: Path) -> None:
    [job, *_] = of_kind(kustomization("base"), "CronJob")
    assert refusals([{**job, "spec": {**job["spec"], "concurencyPolicy": "Forbid"}}], tmp_path)


def test_two_of_a_job_never_run_at_once_and_none_for_ever(manifests: list[Manifest]) -> None:
    jobs = of_kind(manifests, "CronJob")
    assert jobs
    for job in jobs:
        spec, template = job["spec"], job["spec"]["jobTemplate"]["spec"]
        assert spec["concurrencyPolicy"] == "Forbid"
        assert spec["timeZone"] == "Etc/UTC"
        assert spec["startingDeadlineSeconds"] >= 10
        assert {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"} <= spec.keys()
        assert template["activeDeadlineSeconds"] > 0
        [rule] = template["podFailurePolicy"]["rules"]
        assert rule["onExitCodes"]["values"] == [2, 3, 4]
        assert template["template"]["spec"]["restartPolicy"] == "Never"


def test_the_pods_may_do_nothing_that_they_need_not(manifests: list[Manifest]) -> None:
    for pod in pods(manifests):
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] > 0
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        [container] = pod["containers"]
        own = container["securityContext"]
        assert own == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        assert container["resources"]["limits"]["memory"]
        writable = {mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert writable - {"data"} == {"temporary"}
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert not [volume for volume in pod["volumes"] if "hostPath" in volume]


def test_secrets_are_mounted_and_never_made_nor_put_into_arguments_or_environment(manifests: list[Manifest]) -> None:
    assert of_kind(manifests, "Secret") == []
    for pod in pods(manifests):
        [container] = pod["containers"]
        assert "envFrom" not in container
        assert {key for each in container.get("env", []) for key in each} <= {"name", "value"}
        assert not [each for each in container["args"] if "token" in each or "password" in each]


def test_no_rule_lets_anything_be_changed_or_a_secret_be_read(manifests: list[Manifest]) -> None:
    rules = [rule for kind in ("Role", "ClusterRole") for role in of_kind(manifests, kind) for rule in role["rules"]]
    assert {verb for rule in rules for verb in rule["verbs"]} <= {"get", "list"}
    named = [name for rule in rules for name in [*rule.get("resources", []), *rule.get("apiGroups", [])]]
    assert not {"*", "secrets", "configmaps"} & set(named)


def test_the_configuration_loads_as_the_program_reads_it(manifests: list[Manifest], tmp_path: Path) -> None:
    file = tmp_path / "gpureport.toml"
    file.write_text(toml(manifests))
    environ = environment(manifests)
    ca = environ.pop("AWS_CA_BUNDLE", "")
    config, warnings = load_config(file, environ, {})
    assert warnings == []
    mounts = [mount["mountPath"] for pod in pods(manifests) for mount in pod["containers"][0]["volumeMounts"]]
    for place in (config.lake, config.out):
        assert place.reach.cache == Path("/tmp/gpureport") if isinstance(place, ObjectAddress) else str(place.parent) in mounts  # noqa: S108
    credentials, prometheus = environ.get("AWS_SHARED_CREDENTIALS_FILE", ""), config.prometheus
    given = http(manifests)
    named = [path for section in given.values() for key, path in section.items() if key.endswith("_file")]
    assert (prometheus.http_config_file != "") == bool(given)
    for file_named in (*named, prometheus.http_config_file, credentials, ca):
        assert not file_named or str(Path(file_named).parent) in mounts


def test_values_become_settings(tmp_path: Path) -> None:
    file = tmp_path / "gpureport.toml"
    file.write_text(toml(chart(FULL)))
    config, _ = load_config(file, {}, {})
    assert (config.cluster, config.prices.kwh, config.prices.gpu_hour["NVIDIA H200"]) == ("prod-eu", 0.21, 3.6)
    assert (config.thresholds.idle_ratio, config.export.backfill_days, config.report.fail_on) == (0.8, 9, "critical")
    assert http(chart(FULL)) == {
        "authorization": {"credentials_file": "/secrets/bearer/token"},
        "basic_auth": {"username": "me", "password_file": "/secrets/basic/password"},
        "http_headers": {"X-Scope-OrgID": {"values": ["team"]}},
        "tls_config": {
            "ca_file": "/secrets/ca/ca.crt",
            "cert_file": "/secrets/client/tls.crt",
            "key_file": "/secrets/client/tls.key",
        },
    }
    assert config.prometheus.match == {"tenant": "ml"}
    assert [each.code for each in config.suppressions] == ["GR101"]
    assert set(config.kubernetes.systems) == set(Config().kubernetes.systems)
    file.write_text(toml(chart(NAMESPACED)))
    assert load_config(file, {}, {})[0].kubernetes.namespaces == ("research", "serving")


def test_where_all_is_on_object_storage_there_is_no_volume_and_its_keys_come_from_a_secret(tmp_path: Path) -> None:
    for made in (chart(OBJECTS), kustomization("object-storage")):
        assert of_kind(made, "PersistentVolumeClaim") == []
        assert not any("affinity" in pod for pod in pods(made))
        assert all("objects" in [volume["name"] for volume in pod["volumes"]] for pod in pods(made))
        [policy] = of_kind(made, "NetworkPolicy")
        assert 9000 in [port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]]
    file = tmp_path / "gpureport.toml"
    file.write_text(toml(chart(OBJECTS)))
    named = {"AWS_SHARED_CREDENTIALS_FILE": "/secrets/objects/credentials", "AWS_PROFILE": "night"}
    named["AWS_CA_BUNDLE"] = "/secrets/objects-ca/ca.crt"
    assert environment(chart(OBJECTS)) == {"XDG_CACHE_HOME": "/tmp", **named}  # noqa: S108
    config, _ = load_config(file, {}, {})
    assert (str(config.lake), str(config.out)) == ("s3://gpu-lake/prod", "s3://gpu-lake/report")
    assert isinstance(config.lake, ObjectAddress)
    assert config.lake.reach.endpoint_url == "https://minio.storage:9000"


def test_a_lake_on_object_storage_and_a_report_on_the_volume_need_both(tmp_path: Path) -> None:
    made = chart(ROLE)
    assert environment(made)["AWS_REGION"] == "eu-central-1"
    assert len(of_kind(made, "PersistentVolumeClaim")) == 1
    [account] = of_kind(made, "ServiceAccount")
    assert "eks.amazonaws.com/role-arn" in account["metadata"]["annotations"]
    file = tmp_path / "gpureport.toml"
    file.write_text(toml(made))
    config, _ = load_config(file, {"AWS_ROLE_ARN": "arn"}, {})
    assert (str(config.lake), str(config.out)) == ("s3://gpu-lake/prod", "/data/report")
    assert config.prometheus.identity == "aws"
    assert isinstance(config.lake, ObjectAddress)
    assert config.lake.reach.environ == {"AWS_ROLE_ARN": "arn"}


def test_both_jobs_go_to_one_node_where_the_volume_can_be_on_one_alone() -> None:
    assert all("podAffinity" in pod["affinity"] for pod in pods(chart()))
    assert not any("affinity" in pod for pod in pods(chart(FULL)))


def test_without_kubernetes_there_is_neither_token_nor_rule_nor_snapshot() -> None:
    made = chart(WITHOUT)
    [pod] = pods(made)
    assert pod["automountServiceAccountToken"] is False
    assert "--no-kubernetes" in pod["containers"][0]["args"]
    assert not {"ClusterRole", "Role", "NetworkPolicy"} & {each["kind"] for each in made}


def test_nobody_reaches_the_pods(manifests: list[Manifest]) -> None:
    for policy in of_kind(manifests, "NetworkPolicy"):
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        assert policy["spec"].get("ingress", []) == []
        labels = policy["spec"]["podSelector"]["matchLabels"]
        for job in of_kind(manifests, "CronJob"):
            assert labels.items() <= job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("values", CHARTS.values(), ids=CHARTS)
def test_a_controller_that_renders_the_chart_again_finds_nothing_to_change(values: dict[str, Any]) -> None:
    assert helm(values) == anew(values)


def test_no_template_asks_the_cluster_the_clock_or_chance_nor_how_often_it_was_installed() -> None:
    wanting = re.compile(
        r"{{[^}]*\b(lookup|now|date\w*|ago|rand\w+|gen\w+|uuidv4|htpasswd|bcrypt|Revision|IsUpgrade|IsInstall)\b"
    )
    assert [path.name for path in (CHART / "templates").iterdir() if wanting.search(path.read_text())] == []
    assert wanting.search('{{ lookup "v1" "Secret" "a" "b" }}') and wanting.search("{{- if .Release.IsUpgrade }}")


def empty_places(value: Any, place: str = "") -> Iterator[str]:
    if value in (None, [], {}):
        yield place
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from empty_places(each, f"{place}/{key}")


def test_no_hook_and_nothing_empty_that_a_server_drops(manifests: list[Manifest]) -> None:
    """A field that is sent empty and not given back is a difference for ever; an empty selector is kept."""
    for each in manifests:
        annotations = each["metadata"].get("annotations", {})
        assert [name for name in annotations if "hook" in name or "sync-wave" in name] == []
        assert [place for place in empty_places(each) if not place.endswith(("Selector", "emptyDir"))] == []


def test_what_the_jobs_publish_can_leave_the_pods() -> None:
    """Alerts on metrics that a network policy keeps in, or for whose file there is no volume, would never have data."""
    made = chart(PUBLISHED)
    [policy] = of_kind(made, "NetworkPolicy")
    assert 9091 in {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}
    assert 9091 not in {port["port"] for rule in of_kind(chart(), "NetworkPolicy")[0]["spec"]["egress"] for port in rule["ports"]}
    for pod in pods(made):
        [container] = pod["containers"]
        assert {"name": "textfiles", "mountPath": "/textfiles"} in container["volumeMounts"]
        assert "textfiles" in {volume["name"] for volume in pod["volumes"]}
        assert container["env"] == PUBLISHED["extraEnv"]


@pytest.mark.parametrize(
    ("values", "ports"),
    [
        ({}, [9090]),
        ({"prometheus": {"url": "http://vmselect.monitoring:8481/select/0/prometheus"}}, [9090, 8481]),
        ({"prometheus": {"url": "http://prometheus.example.com/path:1"}}, [9090, 80]),
        ({"prometheus": {"url": "https://prometheus.example.com"}}, [9090, 443]),
        ({"config": {"clusters": [{"name": "a", "prometheus": {"url": "http://a:8080"}}, {"name": "b"}]}}, [9090, 8080]),
        ({"objectStorage": {"lake": "s3://gpu-lake/prod", "endpointUrl": "http://minio:9000"}}, [9090, 443, 9000]),
        ({"config": {"metrics": {"pushgateway_url": "http://pushgateway:8080"}}}, [9090, 9091, 8080]),
        ({"config": {"report": {"notify": {"webhook_url_file": "/secrets/chat"}}}}, [9090, 443]),
        ({"config": {"report": {"notify": {"smtp_server": "mail:587"}}}}, [9090, 443, 587]),
        ({"config": {"report": {"notify": {"smtp_server": "mail"}}}}, [9090, 443, 25]),
    ],
)
def test_the_jobs_reach_whatever_is_configured_and_nothing_else(values: dict[str, Any], ports: list[int]) -> None:
    [policy] = of_kind(chart({**values, "networkPolicy": {"apiServer": {"ports": [6443]}}}), "NetworkPolicy")
    reached = {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}
    assert reached == {53, 6443, *ports}


@pytest.mark.parametrize("values", CHARTS.values(), ids=CHARTS)
def test_helm_has_nothing_to_say_of_the_chart(values: dict[str, Any]) -> None:
    lint = helm(values)["lint"]
    assert (lint["messages"], lint["errors"]) == ([], [])


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"clusters": "x"}, "clusters"),
        ({"run": {"concurrencyPolicy": "Allow"}}, "concurrencyPolicy"),
        ({"run": {"schedule": "at night"}}, "schedule"),
        ({"storage": {"accessModes": ["ReadWriteOncePod"]}}, "accessModes"),
        ({"prometheus": {"url": "http://me:secret@prometheus:9090"}}, "url"),
        ({"prometheus": {"headers": {"Authorization": "Bearer secret"}}}, "Authorization"),
        ({"prometheus": {"basicAuth": {"username": "me"}}}, "secretName"),
        ({"image": {"digest": "latest"}}, "digest"),
        ({"objectStorage": {"lake": "ftp://gpu-lake/prod"}}, "lake"),
        ({"objectStorage": {"endpointUrl": "https://me:secret@minio:9000"}}, "endpointUrl"),
        ({"objectStorage": {"credentials": {"accessKey": "AKIA"}}}, "accessKey"),
        ({"config": {"object_store": {"region": "x"}}}, "object_store"),
        ({"podSecurityContext": {"runAsNonRoot": False}}, "runAsNonRoot"),
        ({"config": {"prometheus": {"url": "http://other"}}}, "prometheus"),
        ({"config": {"thresholdz": {"idle_ratio": 0.5}}}, "thresholdz"),
        ({"run": {"timeZone": "Mars"}}, "timeZone"),
        ({"kubernetes": {"namespaces": ["a/../b"]}}, "namespaces"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(values: dict[str, Any], named: str) -> None:
    assert named in helm(values).get("error", "")


def test_every_value_is_described_by_the_schema_and_has_a_default() -> None:
    import json

    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values.keys() == schema["properties"].keys() - {"global"}
    made_of_values = {"cluster", "lake", "out", "object_store", "prometheus", "kubernetes"}
    assert set(schema["properties"]["config"]["propertyNames"]["enum"]) == Config.model_fields.keys() - made_of_values


def test_the_alerts_become_a_rule_of_the_prometheus_operator_where_they_are_asked_for() -> None:
    [rule] = of_kind(chart({"alerts": {"enabled": True, "labels": {"release": "prometheus"}}}), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((CHART / "alerts.yaml").read_text())
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert of_kind(chart(), "PrometheusRule") == []


def test_the_dashboard_is_a_config_map_where_it_is_asked_for(tmp_path: Path) -> None:
    assert refusals(chart(DASHBOARD), tmp_path) == []
    assert helm(DASHBOARD)["lint"]["errors"] == []
    asked, plain = (
        {each["metadata"]["name"]: each for each in of_kind(chart(values), "ConfigMap")} for values in (DASHBOARD, {})
    )
    [name] = asked.keys() - plain.keys()
    assert asked[name]["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(asked[name]["data"]["gpureport.json"]) == json.loads((CHART / "dashboard.json").read_text())
