"""Credentials in every form that Prometheus users have them, against a real Prometheus and on the wire."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpureport.collect.sources.prometheus import Matcher, probe, read
from gpureport.values.errors import AuthError, SourceError, UsageError
from gpureport.values.series import METRIC_LABEL

from . import edges
from .programs import program, prometheus
from .replay import BUILD_INFO, replaying, success
from .samples import connect, rows_of

USER, PASSWORD = "report", "correct horse"
# bcrypt of the password above, cost 4: what Prometheus keeps instead of it.
HASH = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
TOKEN = "a-token-that-must-stay-secret"
REGULAR = Matcher(METRIC_LABEL, "=", "edge_regular")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, blocks: Path) -> Iterator[str]:
    """A Prometheus that lets in one user."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "web.yml").write_text(f"basic_auth_users:\n  {USER}: {HASH}\n")
    flag = f"--web.config.file={folder / 'web.yml'}"
    with prometheus(program("PROMETHEUS_BIN"), blocks, folder / "server", flag, auth=(USER, PASSWORD)) as url:
        yield url


def assert_let_in(url: str, environ: Mapping[str, str] | None = None, **settings: object) -> None:
    connection = connect(url, environ, **settings)
    server = probe(connection)
    assert server.read_path == "remote-read"
    rows = rows_of(read(connection, server, [REGULAR], edges.WINDOW).batch)
    assert len(rows[frozenset(edges.REGULAR.items())]) == 40


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_user_in_the_address_is_let_in(guarded: str) -> None:
    assert_let_in(guarded.replace("//", f"//{USER}:correct%20horse@"))


def test_a_user_of_promtools_http_configuration_is_let_in(guarded: str, tmp_path: Path) -> None:
    inline = f"basic_auth: {{username: {USER}, password: {PASSWORD}}}\n"
    by_file = f"basic_auth: {{username: {USER}, password_file: {written(tmp_path / 'password', PASSWORD)}}}\n"
    for text in (inline, by_file):
        assert_let_in(guarded, http=text)


@pytest.mark.parametrize("password", ["", "wrong-but-secret"], ids=["nobody", "a wrong password"])
def test_who_is_not_known_is_refused(guarded: str, password: str) -> None:
    with pytest.raises(AuthError, match=r"refuses these credentials .401: Unauthorized") as caught:
        probe(connect(guarded, http=password and f"basic_auth: {{username: {USER}, password: {password}}}"))
    assert caught.value.exit_code == 5
    assert "wrong-but-secret" not in str(caught.value)


def headers_sent(http: str) -> Mapping[str, str]:
    """What a server sees, for a question by GET and for one by POST."""
    routes = {BUILD_INFO: success({}), "/api/v1/series": success([])}
    with replaying(routes) as server:
        connection = connect(server.url, http=http)
        connection.json(BUILD_INFO)
        connection.json("/api/v1/series", {"match[]": "up"})
    first, second = (
        {name: each.headers.get(name, "") for name in ("Authorization", "X-Scope-OrgID")} for each in server.requests
    )
    assert first == second
    return first


HTTP_CONFIGS = {
    "authorization": f"authorization: {{credentials: {TOKEN}}}",
    "authorization of a type": f"authorization: {{type: Bearer, credentials: {TOKEN}}}",
    "authorization by file": "authorization: {credentials_file: FOLDER/token}",
    "bearer_token": f"bearer_token: {TOKEN}",
    "bearer_token_file": "bearer_token_file: FOLDER/token",
}


@pytest.mark.parametrize("text", HTTP_CONFIGS.values(), ids=HTTP_CONFIGS)
def test_a_bearer_token_comes_from_promtools_http_configuration(text: str, tmp_path: Path) -> None:
    written(tmp_path / "token", f"{TOKEN}\n")
    assert headers_sent(text.replace("FOLDER", str(tmp_path)))["Authorization"] == f"Bearer {TOKEN}"


def test_an_extra_header_names_the_tenant() -> None:
    assert headers_sent("http_headers: {X-Scope-OrgID: {values: [team-a|team-b]}}")["X-Scope-OrgID"] == "team-a|team-b"


MISSING = {
    "no such token": ("bearer_token_file: /nonexistent/token", "/nonexistent/token cannot be read"),
    "no such CA": (
        "tls_config: {ca_file: /nonexistent/ca.pem}",
        r"ca_file in \S+ = '/nonexistent/ca.pem': this file is not there",
    ),
    "no such certificate": (
        "tls_config: {cert_file: /nonexistent/cert.pem}",
        r"cert_file in \S+ = '/nonexistent/cert.pem': this file",
    ),
}


@pytest.mark.parametrize(("text", "words"), MISSING.values(), ids=MISSING)
def test_a_secret_that_is_not_there_is_a_usage_error(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        connect("http://127.0.0.1:1", http=text)
    assert caught.value.exit_code == 2


BROKEN_CONFIGS = {
    "no YAML": "a: [",
    "a list": "- 1",
    "a text": "hello",
    "a list where a section belongs": "basic_auth: [1]",
    "a text where a section belongs": "tls_config: yes please",
    "headers that are a list": "http_headers: [1]",
    "a password that is a list": "basic_auth: {username: me, password: [a, b]}",
    "a user that is a list": "basic_auth: {username: [me], password: a}",
    "credentials that are a table": "authorization: {credentials: {a: b}}",
    "a file that is a list": "tls_config: {ca_file: [a]}",
    "a token that is a list": "bearer_token: [a]",
    "a header of a word": "http_headers: {X-Scope-OrgID: tenant}",
}


@pytest.mark.parametrize("text", BROKEN_CONFIGS.values(), ids=BROKEN_CONFIGS)
def test_a_broken_http_configuration_is_a_usage_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"http\.yml"):
        connect("http://127.0.0.1:1", http_config_file=written(tmp_path / "http.yml", text))


@pytest.mark.parametrize("token", [f"{TOKEN}\nsecond line", f"{TOKEN}ü", f"{TOKEN}\x00"])
def test_a_token_that_cannot_be_sent_is_a_usage_error_that_does_not_show_it(token: str, tmp_path: Path) -> None:
    file = written(tmp_path / "token", token)
    for text in (
        f"bearer_token_file: {file}",
        f"http_headers: {{X-Api-Key: {{values: [{json.dumps(token)}]}}}}",
        "http_headers: {a b: {values: [c]}}",
    ):
        with pytest.raises(UsageError, match="cannot be sent") as caught:
            connect("http://127.0.0.1:1", http=text)
        assert TOKEN not in str(caught.value)


def test_a_password_beyond_latin_letters_is_sent_as_utf8() -> None:
    sent = headers_sent("basic_auth: {username: rené, password: pässwörd日}")
    assert b64decode(sent["Authorization"].removeprefix("Basic ")).decode() == "rené:pässwörd日"


@dataclass(frozen=True)
class Certificates:
    """Files of a CA and of what it signed for 127.0.0.1."""

    folder: Path

    def __getattr__(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    if not (openssl := shutil.which("openssl")):
        pytest.skip("openssl is not here, so no certificate can be made")
    folder = tmp_path_factory.mktemp("certificates")

    def make(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True, timeout=60)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj")
    (folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\n")
    ca_extension = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    make(*new, "/CN=test CA", "-x509", "-days", "2", *ca_extension, "-keyout", "ca_key.pem", "-out", "ca.pem")
    make(*new, "/CN=stranger", "-x509", "-days", "2", *ca_extension, "-keyout", "stranger_key.pem", "-out", "stranger.pem")
    for name in ("server", "client"):
        make(*new, f"/CN={name}", "-keyout", f"{name}_key.pem", "-out", f"{name}.csr")
        sign = ("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca_key.pem", "-CAcreateserial", "-days", "2")
        make(*sign, "-extfile", "extensions", "-out", f"{name}.pem")
    return Certificates(folder)


@pytest.fixture(scope="module")
def mutual_tls(tmp_path_factory: pytest.TempPathFactory, blocks: Path, certificates: Certificates) -> Iterator[str]:
    """A Prometheus behind TLS that asks for a certificate of the client."""
    folder = tmp_path_factory.mktemp("tls")
    (folder / "web.yml").write_text(
        f"tls_server_config:\n  cert_file: {certificates.server}\n  key_file: {certificates.server_key}\n"
        f"  client_ca_file: {certificates.ca}\n  client_auth_type: RequireAndVerifyClientCert\n"
    )
    flag = f"--web.config.file={folder / 'web.yml'}"
    trusted = {"verify": certificates.ca, "cert": (certificates.client, certificates.client_key)}
    with prometheus(program("PROMETHEUS_BIN"), blocks, folder / "server", flag, scheme="https", **trusted) as url:
        yield url


def tls(certificates: Certificates, *names: str, **more: bool) -> str:
    """The HTTP client file with some of the client's files."""
    files = {"ca_file": certificates.ca, "cert_file": certificates.client, "key_file": certificates.client_key}
    return json.dumps({"tls_config": {name: files[name] for name in names or files} | more})


def test_a_server_of_ones_own_ca_is_trusted_and_sees_the_clients_certificate(mutual_tls: str, certificates: Certificates) -> None:
    assert_let_in(mutual_tls, http=tls(certificates))


def test_the_configured_ca_goes_before_one_of_the_environment(
    mutual_tls: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificates.stranger)
    assert_let_in(mutual_tls, http=tls(certificates))


def test_a_server_of_an_unknown_ca_is_not_asked(mutual_tls: str, certificates: Certificates) -> None:
    with pytest.raises(SourceError, match="certificate verify failed") as caught:
        probe(connect(mutual_tls, http=f"tls_config: {{ca_file: {certificates.stranger}}}", retries=3))
    assert caught.value.exit_code == 5


def test_a_client_without_its_certificate_is_one_sentence(mutual_tls: str, certificates: Certificates) -> None:
    with pytest.raises(SourceError, match=r"certificate required|alert|cannot reach|broke off") as caught:
        probe(connect(mutual_tls, http=tls(certificates, "ca_file")))
    assert "\n" not in str(caught.value)


def test_verification_can_be_switched_off(mutual_tls: str, certificates: Certificates) -> None:
    assert_let_in(mutual_tls, http=tls(certificates, "cert_file", "key_file", insecure_skip_verify=True))
