"""An API server on a real socket that replays recorded replies: paging, gzip, credentials, and what goes wrong."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from prometheus.replay import Answer, Replay, Reply, Request, Routes, as_json, replaying

from gpureport.cli import main
from kube.lake import NOW, RECORDING, VERSIONS

TOKEN = "token-of-the-test"
PODS, CLAIMS = "/api/v1/pods", "/apis/resource.k8s.io/v1/resourceclaims"


def status(code: int, reason: str, message: str, **metadata: str) -> Reply:
    return as_json({"kind": "Status", "status": "Failure", "reason": reason, "message": message, "metadata": metadata}, code)


def forbidden(_: Request) -> Reply:
    return status(403, "Forbidden", 'User "system:anonymous" cannot list this at the cluster scope')


def not_found(_: Request) -> Reply:
    return status(404, "NotFound", "the server could not find the requested resource")


def header(request: Request, name: str) -> str:
    return next((value for each, value in request.headers.items() if each.lower() == name.lower()), "")


def query_of(request: Request) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(request.target).query).items()}


def listing(recorded: Mapping[str, Any]) -> Answer:
    """The list in pages of few objects, compressed as asked."""

    def answer(request: Request) -> Reply:
        query = query_of(request)
        items = recorded["items"]
        start, limit = int(query.get("continue", "at-0").removeprefix("at-")), min(int(query["limit"]), 7)
        metadata: dict[str, Any] = {"resourceVersion": "455"}
        if items and start + limit < len(items):
            metadata |= {"continue": f"at-{start + limit}", "remainingItemCount": len(items) - start - limit}
        page = {**recorded, "metadata": metadata, "items": items and items[start : start + limit]}
        return compressed(page, request)

    return answer


def compressed(page: Any, request: Request) -> Reply:
    body = json.dumps(page).encode()
    if "gzip" not in header(request, "Accept-Encoding"):
        return Reply(body=body)
    return Reply(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})


def recorded_routes(folder: Path = RECORDING) -> dict[str, Reply | Answer]:
    """Everything that the recording answers."""
    routes: dict[str, Reply | Answer] = {"/version": Reply(body=(folder / "version.json").read_bytes())}
    routes["/apis"] = Reply(body=(folder / "apis.json").read_bytes())
    for file in sorted(folder.glob("*.json")):
        reply = json.loads(file.read_text())
        if "items" in reply and "-page" not in file.name:
            version, resource = reply["apiVersion"], file.stem.rpartition("-")[2]
            routes[f"/apis/{version}/{resource}" if "/" in version else f"/api/{version}/{resource}"] = listing(reply)
    return routes


def version_routes(*served: str) -> dict[str, Reply | Answer]:
    """The same DRA objects under these versions, the first preferred."""
    versions = [{"groupVersion": f"resource.k8s.io/{each}", "version": each} for each in served]
    group = {"name": "resource.k8s.io", "versions": versions, "preferredVersion": versions[0]}
    routes: dict[str, Reply | Answer] = {"/apis": as_json({"kind": "APIGroupList", "groups": [group]})}
    for file in sorted(VERSIONS.glob("*.json")):
        version, resource, _ = file.name.split(".")
        path = f"/api/v1/{resource}" if version == "core" else f"/apis/resource.k8s.io/{version}/{resource}"
        if version in ("core", *served):
            routes[path] = listing(json.loads(file.read_text()))
    return routes


@contextmanager
def api_server(routes: Routes) -> Iterator[Replay]:
    """A server with these routes by path, to whoever has the token; all else is not found."""

    def answer(request: Request) -> Reply:
        if header(request, "Authorization") != f"Bearer {TOKEN}":
            return status(401, "Unauthorized", "Unauthorized")
        route = routes.get(request.path, not_found)
        return route if isinstance(route, Reply) else route(request)

    with replaying({}, answer) as server:
        yield server


def kubeconfig(folder: Path, url: str, name: str = "kubeconfig", user: Mapping[str, Any] | None = None, **cluster: Any) -> Path:
    """A kubeconfig for the server, with a context that works and one that leads nowhere."""
    nowhere = {"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": url, **cluster}}, nowhere],
        "users": [{"name": "me", "user": {"token": TOKEN} if user is None else dict(user)}],
        "contexts": [
            {"name": "works", "context": {"cluster": "here", "user": "me"}},
            {"name": "nowhere", "context": {"cluster": "nowhere", "user": "me"}},
        ],
        "current-context": "works",
    }
    file = folder / name
    file.write_text(json.dumps(config))
    return file


def snapshot(config: Path, lake: Path, *more: str) -> int:
    """Run the command; its exit code."""
    arguments = ["snapshot", "--kubeconfig", str(config), "--cluster", "lab", "--lake", str(lake), *more]
    return main(arguments, environ={}, now=NOW)


@contextmanager
def raw_server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that does as told with each connection, in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_ignoring_hangups, args=(talk, connection), daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stopped.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _ignoring_hangups(talk: Callable[[socket.socket], None], connection: socket.socket) -> None:
    with connection:
        try:
            talk(connection)
        except OSError:
            return
