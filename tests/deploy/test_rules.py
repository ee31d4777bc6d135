"""No call without its rule, no rule without its call: each manifest's rules against a run that a server holds to them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kube.api_server import api_server, kubeconfig, listing, recorded_routes, status
from kube.lake import NOW
from prometheus.replay import Answer, Reply, Request, as_json

from gpureport.cli import main
from gpureport.collect.state import KINDS

from .rendering import Manifest, chart, kustomization, of_kind, toml
from .test_manifests import FULL

ALL_SYSTEMS = {"kubernetes": FULL["kubernetes"]}
NAMESPACES = ["research", "serving"]
BUILT_IN = {("", "/apis", "get"), ("", "/version", "get")}
"""What system:discovery and system:public-info-viewer let every account see."""
MANIFESTS: dict[str, Any] = {
    "chart": {},
    "chart, every system": ALL_SYSTEMS,
    "chart, nodes and pods alone": {"kubernetes": {"systems": {"dra": False, "resourceQuota": False}}},
    "chart, namespaced": {"kubernetes": {**FULL["kubernetes"], "namespaces": NAMESPACES}},
    "kustomize base": "base",
    "kustomize namespaced": "namespaced",
}
Permission = tuple[str, str, str]
"""Namespace ('' for the whole cluster), what (group/resource, or a path), verb."""


@dataclass(frozen=True)
class Rules:
    """What the roles of some manifests permit, bound as they are."""

    permitted: frozenset[Permission]
    is_namespaced: bool


def rules_of(manifests: list[Manifest]) -> Rules:
    permitted: set[Permission] = set()
    for role in [*of_kind(manifests, "ClusterRole"), *of_kind(manifests, "Role")]:
        namespace = role["metadata"].get("namespace", "")
        for rule in role["rules"]:
            names = [f"{group}/{name}" for group in rule.get("apiGroups", []) for name in rule["resources"]]
            things = [*names, *rule.get("nonResourceURLs", [])]
            permitted |= {(namespace, thing, verb) for thing in things for verb in rule["verbs"]}
    return Rules(frozenset(permitted), is_namespaced=bool(of_kind(manifests, "Role")))


def permission(path: str) -> Permission:
    """What Kubernetes' authoriser is asked for a GET."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return ("", path, "get")
    match rest:
        case ["namespaces", name]:
            return (name, f"{group}/namespaces", "get")
        case ["namespaces", namespace, resource]:
            return (namespace, f"{group}/{resource}", "list")
        case [resource]:
            return ("", f"{group}/{resource}", "list")
    raise AssertionError(path)


def whole_server() -> dict[str, Reply | Answer]:
    """The recording, and every other kind with an empty list: a server with every system."""
    routes = recorded_routes()
    groups = json.loads(bytes(routes["/apis"].body))["groups"]  # type: ignore[union-attr]
    served = {each["name"]: each["preferredVersion"]["version"] for each in groups}
    for kind in KINDS:
        if kind.group and kind.group not in served:
            version = {"groupVersion": f"{kind.group}/v1", "version": "v1"}
            groups.append({"name": kind.group, "versions": [version], "preferredVersion": version})
            served[kind.group] = "v1"
        prefix = f"/apis/{kind.group}/{served[kind.group]}" if kind.group else "/api/v1"
        empty = {"kind": f"{kind.kind}List", "apiVersion": prefix.removeprefix("/apis/").removeprefix("/api/"), "items": []}
        routes.setdefault(f"{prefix}/{kind.resource}", listing(empty))
    routes["/apis"] = as_json({"kind": "APIGroupList", "groups": groups})
    return routes


def in_namespaces(routes: dict[str, Reply | Answer]) -> dict[str, Reply | Answer]:
    """The same lists by namespace, and each namespace by itself."""
    more: dict[str, Reply | Answer] = {}
    for path, route in routes.items():
        if callable(route):
            prefix, _, resource = path.rpartition("/")
            for namespace in NAMESPACES:
                more[f"{prefix}/namespaces/{namespace}/{resource}"] = route
    for namespace in NAMESPACES:
        more[f"/api/v1/namespaces/{namespace}"] = as_json({"kind": "Namespace", "metadata": {"name": namespace}})
    return {**routes, **more}


def held_to(rules: Rules, calls: set[Permission]) -> dict[str, Reply | Answer]:
    """A server that notes what is asked of it, and refuses what the rules do not permit."""
    built_in = BUILT_IN if rules.is_namespaced else set()

    def guarded(path: str, route: Reply | Answer) -> Answer:
        def answer(request: Request) -> Reply:
            wanted = permission(path)
            calls.add(wanted)
            if wanted not in rules.permitted | built_in:
                return status(403, "Forbidden", f"cannot {wanted}")
            return route if isinstance(route, Reply) else route(request)

        return answer

    return {path: guarded(path, route) for path, route in in_namespaces(whole_server()).items()}


@pytest.mark.parametrize("name", MANIFESTS)
def test_no_call_without_its_rule_and_no_rule_without_its_call(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = MANIFESTS[name]
    manifests = kustomization(values) if isinstance(values, str) else chart(values)
    rules = rules_of(manifests)
    config = tmp_path / "gpureport.toml"
    config.write_text(toml(manifests))
    calls: set[Permission] = set()
    with api_server(held_to(rules, calls)) as server:
        environ = {
            "KUBECONFIG": str(kubeconfig(tmp_path, server.url)),
            "GPUREPORT_LAKE": str(tmp_path / "lake"),
            "GPUREPORT_PROMETHEUS__URL": "http://127.0.0.1:9",
        }
        assert main(["--config", str(config), "snapshot"], environ, NOW) == 0
        assert main(["--config", str(config), "run"], environ, NOW) == 5  # no Prometheus there: but the state was read
    told = capsys.readouterr().err
    assert "not allowed to list" not in told
    needed = calls - (BUILT_IN if rules.is_namespaced else set())
    assert needed == rules.permitted


def test_the_authoriser_of_this_test_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = Rules(rules_of(kustomization("base")).permitted - {("", "/pods", "list")}, is_namespaced=False)
    with api_server(held_to(rules, set())) as server:
        environ = {"KUBECONFIG": str(kubeconfig(tmp_path, server.url)), "GPUREPORT_LAKE": str(tmp_path / "lake")}
        assert main(["snapshot"], environ, NOW) == 5
    assert "not allowed to list pods" in capsys.readouterr().err


def test_a_namespace_alone_gives_the_rows_of_that_namespace(tmp_path: Path) -> None:
    """The replay gives every namespace's list the same objects, so rows say which lists were read, and how often."""
    from kube.lake import query

    environ = {"GPUREPORT_LAKE": str(tmp_path / "lake"), "GPUREPORT_KUBERNETES__NAMESPACES": '["research"]'}
    with api_server(in_namespaces(recorded_routes())) as server:
        environ["KUBECONFIG"] = str(kubeconfig(tmp_path, server.url))
        assert main(["snapshot"], environ, NOW) == 0
        lists = [request.path for request in server.requests if "limit" in request.target]
    assert all("/namespaces/research/" in path for path in lists)
    assert query(tmp_path / "lake", "select namespace from lake.namespace") == [("research",)]
    reasons = dict(query(tmp_path / "lake", "select asked, reason from lake.source"))
    assert "kubernetes.namespaces is set" in reasons["nodes"]
    assert reasons["pods"] == ""
