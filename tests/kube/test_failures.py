"""What an API server may do wrong: one sentence, the right exit code, the lake as it was; and what is no failure."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from lake_rows import seen
from prometheus.replay import Answer, Request

from gpureport.cli import main
from gpureport.collect.sources.kubernetes import connection
from kube.api_server import (
    CLAIMS,
    PODS,
    Reply,
    api_server,
    as_json,
    forbidden,
    kubeconfig,
    query_of,
    raw_server,
    recorded_routes,
    snapshot,
    status,
    version_routes,
)
from kube.decided import assert_decided
from kube.lake import NOW, RECORDING, query

SOURCE = 5


def refused(capsys: pytest.CaptureFixture[str], config: Path, lake: Path) -> str:
    """The one sentence of a snapshot that fails, and that nothing was written of the pods."""
    capsys.readouterr()
    assert snapshot(config, lake) == SOURCE
    *_, sentence = (printed := capsys.readouterr().err).splitlines()
    assert sentence.startswith("gpureport: ")
    assert "Traceback" not in printed
    assert not (lake / "pod").exists()
    return sentence


def first(failure: Answer, count: int, then: Reply | Answer) -> Answer:
    """A failure some times, then the real answer."""
    left = [failure] * count

    def answer(request: Request) -> Reply:
        chosen = left.pop() if left else then
        return chosen if isinstance(chosen, Reply) else chosen(request)

    return answer


# Not allowed, not there


def test_what_may_not_be_listed_is_unknown_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(recorded_routes() | {CLAIMS: forbidden}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert "not allowed to list resourceclaims.resource.k8s.io" in capsys.readouterr().err
    assert not (tmp_path / "lake" / "claim").exists()
    assert query(tmp_path / "lake", "select count(*) from lake.pod") == [(21,)]
    [(reason, count)] = query(
        tmp_path / "lake", "select reason, series_count from lake.source where asked = 'resourceclaims.resource.k8s.io'"
    )
    assert reason.startswith("not allowed (403")
    assert count == 0


def test_credentials_that_may_list_nothing_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    routes: dict[str, Reply | Answer] = dict.fromkeys(recorded_routes(), forbidden)
    with api_server(routes) as server:
        assert "docs/operations.md" in refused(capsys, kubeconfig(tmp_path, server.url), tmp_path / "lake")


def test_a_refusal_by_a_server_that_is_starting_is_no_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before its rules are read it allows nobody anything; /readyz, which everybody may ask, says so."""
    starting = status(500, "InternalError", "[-]poststarthook/rbac/bootstrap-roles failed")
    routes = recorded_routes()
    nodes = routes["/api/v1/nodes"]
    ready = {"/readyz": first(lambda _: starting, 1, Reply(200, b"ok")), "/api/v1/nodes": first(forbidden, 2, nodes)}
    with api_server(routes | ready) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert_decided(tmp_path / "lake")
    assert "not allowed" not in capsys.readouterr().err


def test_a_server_that_does_not_come_to_start_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    routes = dict.fromkeys(recorded_routes(), forbidden) | {"/readyz": status(500, "InternalError", "not yet")}
    with api_server(routes) as server:
        assert "the server is starting" in refused(capsys, kubeconfig(tmp_path, server.url), tmp_path / "lake")


def test_a_server_that_hides_its_groups_still_gives_its_pods(tmp_path: Path) -> None:
    with api_server(recorded_routes() | {"/apis": forbidden, "/version": forbidden}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert query(tmp_path / "lake", "select count(*) from lake.pod") == [(21,)]
    assert query(tmp_path / "lake", "select distinct server from lake.source") == [("Kubernetes",)]


def test_a_cluster_without_dra_has_no_claims_and_says_why(tmp_path: Path) -> None:
    with api_server(recorded_routes() | {"/apis": as_json({"kind": "APIGroupList", "groups": None})}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert not [each for each in server.requests if each.path.startswith("/apis/")]
    reasons = query(tmp_path / "lake", "select distinct reason from lake.source where asked like '%.resource.k8s.io'")
    assert reasons == [("the server does not serve resource.k8s.io",)]


def test_a_snapshot_is_of_the_time_at_which_a_server_answered(tmp_path: Path) -> None:
    starting = status(503, "ServiceUnavailable", "starting")
    routes = recorded_routes()
    with api_server(routes | {"/version": first(lambda _: starting, 1, routes["/version"])}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    [(late,)] = query(tmp_path / "lake", f"select distinct observed_at > timestamp '{NOW:%Y-%m-%d %H:%M:%S}' from lake.pod")
    assert late


def test_wrong_credentials_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(recorded_routes()) as server:
        config = kubeconfig(tmp_path, server.url, user={"token": "stale-secret"})
        sentence = refused(capsys, config, tmp_path / "lake")
    assert "401" in sentence
    assert "stale-secret" not in sentence


# Lists that expire


def expiring(token: str) -> Answer:
    return lambda _: status(
        410, "Expired", "The provided continue parameter is too old", **({"continue": token} if token else {})
    )


def pods_that_expire(count: int, token: str = "") -> Answer:
    """Pods whose later pages expire some times."""
    real = recorded_routes()[PODS]
    assert callable(real)
    later = first(expiring(token), count, real)
    return lambda request: later(request) if query_of(request).get("continue", "at-0") != "at-0" else real(request)


def test_a_list_that_expires_starts_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(recorded_routes() | {PODS: pods_that_expire(2)}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert [query_of(each).get("continue") for each in server.requests if each.path == PODS] == [
        *(None, "at-7"),
        *(None, "at-7"),
        *(None, "at-7", "at-14"),
    ]
    assert_decided(tmp_path / "lake")
    assert "warning" not in capsys.readouterr().err


def test_what_a_list_said_before_it_started_again_does_not_count(tmp_path: Path) -> None:
    """A pod of the first page is gone when the list is read again."""
    recorded = json.loads((RECORDING / "pods.json").read_text())["items"]
    before = as_json({"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": "old"}, "items": recorded[:2]})
    after = as_json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": recorded[1:]})
    answers = [before, expiring("")(Request("GET", "", {}, b"")), after]
    with api_server(recorded_routes() | {PODS: lambda _: answers.pop(0)}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    gone, stays = (pod["metadata"]["name"] for pod in recorded[:2])
    names = [name for (name,) in query(tmp_path / "lake", "select pod from lake.pod")]
    assert (names.count(gone), names.count(stays), len(names)) == (0, 1, 20)


def test_a_list_that_always_expires_ends_with_a_later_moment_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with api_server(recorded_routes() | {PODS: pods_that_expire(3, token="at-7")}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert_decided(tmp_path / "lake")
    assert "warning: pods: the list expired" in capsys.readouterr().err
    [(warnings,)] = query(tmp_path / "lake", "select warnings from lake.source where asked = 'pods'")
    assert len(warnings) == 1


def test_a_namespace_whose_list_always_expires_is_said_also_where_the_next_one_is_read_well(tmp_path: Path) -> None:
    routes = recorded_routes()
    paths = {"/api/v1/namespaces/a/pods": pods_that_expire(3, token="at-7"), "/api/v1/namespaces/b/pods": routes[PODS]}
    with api_server(routes | paths) as server:
        flags = ["--kubeconfig", str(kubeconfig(tmp_path, server.url)), "--cluster", "lab", "--lake", str(tmp_path / "lake")]
        main(["snapshot", *flags], environ={"GPUREPORT_KUBERNETES__NAMESPACES": '["a", "b"]'}, now=NOW)
    [(warnings,)] = query(tmp_path / "lake", "select warnings from lake.source where asked = 'pods'")
    assert len(warnings) == 1


def test_a_namespace_that_is_gone_does_not_cost_the_labels_of_the_others(tmp_path: Path) -> None:
    """Its team is a label of the one that is there; of one that was deleted nothing is known."""
    there = {"kind": "Namespace", "metadata": {"name": "a", "uid": "a", "labels": {"team": "vision"}}}
    routes, none = recorded_routes(), as_json({"kind": "PodList", "apiVersion": "v1", "items": []})
    pods = {"/api/v1/namespaces/gone/pods": none, "/api/v1/namespaces/a/pods": routes[PODS]}
    with api_server(routes | pods | {"/api/v1/namespaces/a": as_json(there)}) as server:
        flags = ["--kubeconfig", str(kubeconfig(tmp_path, server.url)), "--lake", str(tmp_path / "lake")]
        main(["snapshot", *flags], environ={"GPUREPORT_KUBERNETES__NAMESPACES": '["gone", "a"]'}, now=NOW)
    assert query(tmp_path / "lake", "select namespace, labels['team'] from lake.namespace") == [("a", "vision")]


@pytest.mark.parametrize("token", ["", "at-7"])
def test_a_list_that_never_ends_is_an_error(token: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(recorded_routes() | {PODS: pods_that_expire(1000, token)}) as server:
        assert "expired" in refused(capsys, kubeconfig(tmp_path, server.url), tmp_path / "lake")


def test_a_server_that_repeats_itself_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = as_json({"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": "same"}, "items": []})
    with api_server(recorded_routes() | {PODS: page}) as server:
        assert "again and again" in refused(capsys, kubeconfig(tmp_path, server.url), tmp_path / "lake")


# Broken, slow and other answers

HALF = Reply(body=b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[', missing_bytes=500)
BROKEN = {
    "half a body": (HALF, "broke off"),
    "no JSON": (Reply(body=b'{"kind":"PodList","items":[{"metadata"'), "not JSON"),
    "no gzip": (Reply(body=b"plain", headers={"Content-Encoding": "gzip"}), "broke off"),
    "unavailable": (status(503, "ServiceUnavailable", "etcdserver: leader changed"), "leader changed"),
    "too many requests": (status(429, "TooManyRequests", "the server has received too many requests"), "429"),
}


def test_an_answer_that_is_broken_once_is_asked_for_again(tmp_path: Path) -> None:
    """Another list in each way."""
    real = recorded_routes()
    paths = [PODS, CLAIMS, "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/resourcequotas"]
    once = {
        path: first(lambda _, broken=broken: broken, 1, real[path])
        for path, (broken, _) in zip(paths, BROKEN.values(), strict=True)
    }
    with api_server(real | once) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
        assert min(server.count(path) for path in paths) > 1
    assert_decided(tmp_path / "lake")


@pytest.mark.parametrize("name", BROKEN)
def test_an_answer_that_stays_broken_is_an_error(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken, word = BROKEN[name]
    with api_server(recorded_routes() | {PODS: broken}) as server:
        sentence = refused(capsys, kubeconfig(tmp_path, server.url), tmp_path / "lake")
    assert word in sentence
    assert PODS in sentence


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"[]"),
        Reply(body=b'{"kind":"Pod"}'),
        Reply(404 - 104, b"", headers={"Location": "http://127.0.0.1:1/login"}),
        Reply(302, b"", headers={"Location": "http://127.0.0.1:1/login"}),
        status(400, "BadRequest", "continue key is not valid"),
    ],
)
def test_an_answer_that_is_no_list_is_an_error(reply: Reply, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(recorded_routes() | {PODS: reply}) as server:
        assert PODS in refused(capsys, kubeconfig(tmp_path, server.url), tmp_path / "lake")


HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"


def silent(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass


def half_then_silent(connection: socket.socket) -> None:
    connection.recv(65_536)
    connection.sendall(HEADERS + b'{"kind":')
    silent(connection)


def dripping(connection: socket.socket) -> None:
    connection.recv(65_536)
    connection.sendall(HEADERS)
    while True:
        connection.sendall(b" ")
        time.sleep(0.05)


def no_http(connection: socket.socket) -> None:
    connection.recv(65_536)
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")


@pytest.mark.parametrize(
    ("talk", "word"),
    # A drip that stands still for long, on a busy machine, is a silence.
    [(silent, "timed out"), (half_then_silent, "timed out"), (dripping, "not whole|timed out"), (no_http, "no answer")],
)
def test_a_server_that_does_not_come_to_an_end_is_left(
    talk: Callable[[socket.socket], None],
    word: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_READ_SECONDS", 0.4)
    with raw_server(talk) as url:
        assert re.search(word, refused(capsys, kubeconfig(tmp_path, url), tmp_path / "lake"))


def test_a_server_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = refused(capsys, kubeconfig(tmp_path, "http://127.0.0.1:1"), tmp_path / "lake")
    assert "connection refused" in sentence
    assert "http://127.0.0.1:1" in sentence


def test_a_name_that_does_not_resolve_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "api.invalid" in refused(capsys, kubeconfig(tmp_path, "http://api.invalid"), tmp_path / "lake")


def test_a_server_without_tls_is_no_https(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with raw_server(no_http) as url:
        assert "TLS" in refused(capsys, kubeconfig(tmp_path, url.replace("http:", "https:")), tmp_path / "lake")


def test_a_snapshot_that_fails_leaves_the_ones_before(tmp_path: Path) -> None:
    with api_server(recorded_routes()) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    before = seen(tmp_path / "lake")
    with api_server(recorded_routes() | {PODS: HALF}) as server:
        arguments = [
            "snapshot",
            "--kubeconfig",
            str(kubeconfig(tmp_path, server.url)),
            "--cluster",
            "lab",
            "--lake",
            str(tmp_path / "lake"),
        ]
        assert main(arguments, environ={}, now=NOW + timedelta(minutes=1)) == SOURCE
    after = seen(tmp_path / "lake")
    assert {name: after[name] for name in before} == before


def test_a_list_that_fails_costs_itself_and_the_exit_code(tmp_path: Path) -> None:
    """As where the webhook of an optional quota system is down: claims vanish with their pods, and cannot be read later."""
    broken = status(500, "InternalError", "conversion webhook for nodes failed")
    with api_server(recorded_routes() | {"/api/v1/nodes": broken}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == SOURCE
    assert query(tmp_path / "lake", "select count(*) from lake.pod") == [(21,)]
    [(reason,)] = query(tmp_path / "lake", "select reason from lake.source where asked = 'nodes'")
    assert "conversion webhook" in reason


def test_pods_that_may_not_be_listed_are_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(recorded_routes() | {PODS: forbidden}) as server:
        assert "list pods" in refused(capsys, kubeconfig(tmp_path, server.url), tmp_path / "lake")


def test_the_next_version_is_tried_where_one_fails(tmp_path: Path) -> None:
    routes = version_routes("v1", "v1beta2")
    broken = status(500, "InternalError", "conversion webhook failed")
    with api_server(routes | {"/apis/resource.k8s.io/v1/resourceclaims": broken}) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "lake") == 0
    assert query(tmp_path / "lake", "select count(*) > 0 from lake.claim") == [(True,)]


def test_a_cluster_that_is_gone_does_not_cost_the_others(tmp_path: Path) -> None:
    with api_server(recorded_routes()) as server:
        here, nowhere = kubeconfig(tmp_path, server.url), kubeconfig(tmp_path, "http://127.0.0.1:1", name="nowhere")
        clusters = "".join(
            f"[[clusters]]\nname = '{name}'\nkubernetes.kubeconfig = '{file}'\n" for name, file in (("a", nowhere), ("b", here))
        )
        (tmp_path / "two.toml").write_text(f"[metrics]\nfile = '{tmp_path}/job.prom'\n{clusters}")
        arguments = ["--config", str(tmp_path / "two.toml"), "snapshot", "--lake", str(tmp_path / "lake")]
        assert main(arguments, environ={}, now=NOW) == SOURCE
    assert query(tmp_path / "lake", "select distinct cluster from lake.pod") == [("b",)]
    assert 'gpureport_snapshot_success{cluster="a"} 0.0' in (tmp_path / "job-snapshot-a.prom").read_text()
    assert 'gpureport_snapshot_success{cluster="b"} 1.0' in (tmp_path / "job-snapshot-b.prom").read_text()


def test_a_snapshot_beside_an_export_that_fails_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is in the lake; an export that says nothing of it looks as if neither were."""
    with api_server(recorded_routes()) as server:
        arguments = ["export", "--date", "2026-11-20", "--prometheus-url", "http://127.0.0.1:1", "--lake", str(tmp_path / "lake")]
        assert main([*arguments, "--kubeconfig", str(kubeconfig(tmp_path, server.url))], environ={}, now=NOW) == SOURCE
    printed = capsys.readouterr().err
    assert f"from {server.url}: " in printed
    assert "127.0.0.1:1" in printed.splitlines()[-1]
    assert query(tmp_path / "lake", "select count(*) > 0 from lake.pod") == [(True,)]


def test_a_configuration_without_any_kubernetes_takes_no_snapshot_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text("[[clusters]]\nname = 'a'\nprometheus.url = 'http://127.0.0.1:1'\n")
    assert main(["--config", str(tmp_path / "one.toml"), "snapshot", "--lake", str(tmp_path / "lake")], environ={}, now=NOW) == 2


def test_a_folder_that_is_no_lake_is_named_before_anything_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with api_server(recorded_routes()) as server:
        assert snapshot(kubeconfig(tmp_path, server.url), tmp_path / "mine") == 1
    assert server.requests == []
    assert "not a gpureport lake" in capsys.readouterr().err
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["notes.txt"]
