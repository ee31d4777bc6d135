"""Which cluster is read, and with which credentials."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from gpureport.cli import main
from gpureport.collect.sources.kubernetes.connection import is_in_cluster, open_client
from gpureport.config import Kubernetes
from gpureport.values.errors import UsageError
from kube.api_server import TOKEN, api_server, kubeconfig, recorded_routes, snapshot
from kube.lake import NOW, query

USAGE, SOURCE = 2, 5


def failed(capsys: pytest.CaptureFixture[str], code: int, *arguments: str, environ: dict[str, str] | None = None) -> str:
    capsys.readouterr()
    assert main(["snapshot", *arguments], environ=environ or {}, now=NOW) == code
    sentence = capsys.readouterr().err
    assert sentence.startswith("gpureport: ")
    assert sentence.count("\n") == 1
    return sentence


def test_without_a_cluster_the_sentence_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = failed(capsys, USAGE, "--lake", str(tmp_path / "lake"), environ={"HOME": str(tmp_path)})
    for way in ("--kubeconfig", "KUBECONFIG", "service account"):
        assert way in sentence
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "clusters: 3", "just words", "current-context: gone\nclusters: []\ncontexts: []\nusers: []", "a: [b"]
)
def test_a_kubeconfig_that_is_none_is_a_usage_error(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    assert str(file) in failed(capsys, USAGE, "--kubeconfig", str(file), "--lake", str(tmp_path / "lake"))


def test_a_kubeconfig_that_is_not_there_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere is not there" in failed(capsys, USAGE, "--kubeconfig", str(tmp_path / "nowhere"))


def test_a_kubeconfig_that_is_a_folder_is_named_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{tmp_path} is a folder, not a file" in failed(capsys, USAGE, "--kubeconfig", str(tmp_path))


def test_a_context_that_is_not_there_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = kubeconfig(tmp_path, "http://127.0.0.1:1")
    assert "gone" in failed(capsys, USAGE, "--kubeconfig", str(config), "--context", "gone")


def test_the_context_chooses_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(recorded_routes()) as server:
        config = kubeconfig(tmp_path, server.url)
        assert snapshot(config, tmp_path / "lake", "--context", "works") == 0
        assert "127.0.0.1:1/" in failed(capsys, SOURCE, "--kubeconfig", str(config), "--context", "nowhere")


@pytest.mark.parametrize("variable", ["KUBECONFIG", "HOME"])
def test_the_environment_names_the_kubeconfig(variable: str, tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    with api_server(recorded_routes()) as server:
        file = kubeconfig(tmp_path / ".kube", server.url, "config")
        environ = {variable: str(file if variable == "KUBECONFIG" else tmp_path)}
        assert main(["snapshot", "--lake", str(tmp_path / "lake")], environ=environ, now=NOW) == 0
    assert query(tmp_path / "lake", "select count(*) from lake.pod") == [(21,)]


def plugin(folder: Path, code: str) -> dict[str, object]:
    """A user whose token a program prints."""
    program = folder / "plugin"
    program.write_text(f"#!{sys.executable}\n{code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(program), "args": [], "interactiveMode": "Never"}}


def test_a_credential_plugin_gives_the_token(tmp_path: Path) -> None:
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": TOKEN}}
    user = plugin(tmp_path, f"print({json.dumps(json.dumps(credential))})")
    with api_server(recorded_routes()) as server:
        assert snapshot(kubeconfig(tmp_path, server.url, user=user), tmp_path / "lake") == 0


def test_a_credential_plugin_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = kubeconfig(tmp_path, "http://127.0.0.1:1", user=plugin(tmp_path, "raise SystemExit(3)"))
    capsys.readouterr()
    assert snapshot(config, tmp_path / "lake") == SOURCE
    assert "plugin" in capsys.readouterr().err


def test_the_kubeconfig_is_never_written(tmp_path: Path) -> None:
    with api_server(recorded_routes()) as server:
        config = kubeconfig(tmp_path, server.url)
        before = config.read_bytes(), config.stat().st_mtime_ns
        assert snapshot(config, tmp_path / "lake") == 0
    assert (config.read_bytes(), config.stat().st_mtime_ns) == before


def service_account(folder: Path) -> Path:
    (folder / "token").write_text("in-cluster")
    (folder / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    return folder


def test_in_a_pod_the_service_account_serves(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert is_in_cluster(environ, tmp_path) is False
    folder = service_account(tmp_path)
    assert is_in_cluster(environ, folder) is True
    assert is_in_cluster({}, folder) is False
    configuration = open_client(Kubernetes(), environ, folder).configuration
    assert configuration.host == "https://10.96.0.1:443"
    assert configuration.ssl_ca_cert == str(folder / "ca.crt")
    assert configuration.auth_settings()["BearerToken"]["value"] == "bearer in-cluster"


def test_a_service_account_without_its_ca_is_a_usage_error(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    (service_account(tmp_path) / "ca.crt").unlink()
    with pytest.raises(UsageError, match="mounted"):
        open_client(Kubernetes(), environ, tmp_path)
