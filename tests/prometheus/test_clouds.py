"""Clouds' managed Prometheus: published signatures of AWS, and what the clouds' own libraries send over the wire."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest
import requests

from gpureport.collect.sources.prometheus.access import Signed
from gpureport.values.errors import AuthError, UsageError

from .replay import BUILD_INFO, Replay, Reply, Request, as_json, one_after_the_other, replaying, success
from .samples import connect

auth = pytest.importorskip("awscrt.auth")

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
"""Of AWS' own test suite, as are its requests and signatures below."""
BASE = "https://example.amazonaws.com/"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PUBLISHED = {
    "get-vanilla": ("GET", BASE, {}, b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    "get-vanilla-query-order-key-case": (
        *("GET", f"{BASE}?Param2=value2&Param1=value1", {}, b""),
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "get-unreserved": (
        *("GET", f"{BASE}-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", {}, b""),
        "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
    ),
    "post-vanilla": ("POST", BASE, {}, b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    "post-x-www-form-urlencoded": (
        *("POST", BASE, FORM, b"Param1=value1"),
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_signatures_are_those_that_aws_publishes(name: str) -> None:
    method, url, headers, body, signature = PUBLISHED[name]
    credentials = auth.AwsCredentialsProvider.new_static(KEY, SECRET)
    signed = Signed(credentials, "us-east-1", service="service", date=datetime(2015, 8, 30, 12, 36, tzinfo=UTC))
    request = signed(requests.Request(method, url, headers, data=body or None).prepare())
    names = ";".join(sorted({"host", "x-amz-date", *map(str.lower, headers)}))
    assert request.headers["Authorization"] == (
        f"AWS4-HMAC-SHA256 Credential={KEY}/20150830/us-east-1/service/aws4_request, SignedHeaders={names}, Signature={signature}"
    )


def signature_of(request: Request, names: list[str], secret: str, scope: str) -> str:
    """Signature Version 4 of a request as it came, from its definition."""
    query = sorted(f"{quote(name, '-_.~')}={quote(value, '-_.~')}" for name, value in parse_qsl(urlsplit(request.target).query))
    sent = {name.lower(): value for name, value in request.headers.items()}
    signed = "".join(f"{name}:{sent[name]}\n" for name in names)
    path = quote(unquote(request.path))
    canonical = "\n".join(
        [request.method, path, "&".join(query), signed, ";".join(names), hashlib.sha256(request.body).hexdigest()]
    )
    text = "\n".join(["AWS4-HMAC-SHA256", sent["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def verified(request: Request, secret: str) -> bool:
    parts = dict(part.split("=", 1) for part in request.headers["Authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(", "))
    scope = parts["Credential"].partition("/")[2]
    assert scope.endswith("/eu-central-1/aps/aws4_request")
    return parts["Signature"] == signature_of(request, parts["SignedHeaders"].split(";"), secret, scope)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    environ = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-central-1"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return environ


def test_every_request_to_aws_is_signed_as_it_is_sent(aws: dict[str, str]) -> None:
    series = one_after_the_other(Reply(503, b"busy", "text/plain"), success([]))
    with replaying({"/workspaces/ws-1/api/v1/series": series, f"/workspaces/ws-1{BUILD_INFO}": success({})}) as server:
        connection = connect(f"{server.url}/workspaces/ws-1", aws, identity="aws", retries=1)
        connection.json(BUILD_INFO, params={"match[]": 'up{job="a b+c", x=~"ä|/"}', "limit": "1"})
        connection.json("/api/v1/series", {"match[]": 'up{job="a b"}'})
    assert len(server.requests) == 3
    assert all(verified(request, SECRET) for request in server.requests)
    assert not any(verified(request, "another") for request in server.requests)


def test_a_session_token_of_aws_is_sent_and_signed(aws: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    with replaying({BUILD_INFO: success({})}) as server:
        connect(server.url, aws, identity="aws").json(BUILD_INFO)
    [request] = server.requests
    assert request.headers["X-Amz-Security-Token"] == "session"
    assert "x-amz-security-token" in request.headers["Authorization"]
    assert verified(request, SECRET)


def test_the_region_is_that_of_the_workspace_or_of_the_environment() -> None:
    with pytest.raises(UsageError, match="names no region of AWS; set AWS_REGION"):
        connect("https://prometheus.example.com", identity="aws")
    connect("https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1", identity="aws")


def test_without_credentials_of_aws_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": str(tmp_path / "a"), "HOME": str(tmp_path)}
    for name, value in {**nowhere, "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "b")}.items():
        monkeypatch.setenv(name, value)
    with replaying({BUILD_INFO: success({})}) as server, pytest.raises(AuthError, match="no credentials of aws") as caught:
        connect(server.url, {"AWS_REGION": "eu-central-1"}, identity="aws").json(BUILD_INFO)
    assert server.requests == []
    assert "\n" not in str(caught.value)


@pytest.fixture
def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replay]:
    """Google's token service, and a service account whose key is made here."""
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    pytest.importorskip("google.auth")
    from cryptography.hazmat.primitives import serialization

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    with replaying({"/token": as_json({"access_token": "of-google", "expires_in": 3600, "token_type": "Bearer"})}) as server:
        account = {
            "type": "service_account",
            "project_id": "lab",
            "private_key_id": "1",
            "private_key": pem,
            "client_email": "report@lab.iam.gserviceaccount.com",
            "token_uri": f"{server.url}/token",
        }
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        yield server


def test_a_token_of_google_is_asked_for_once_and_sent_with_each_request(google: Replay) -> None:
    with replaying({BUILD_INFO: success({})}) as server:
        connection = connect(server.url, identity="google")
        connection.json(BUILD_INFO)
        connection.json(BUILD_INFO)
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer of-google"] * 2
    [request] = google.requests
    assert request.form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"


def test_without_an_account_of_google_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("google.auth")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    with pytest.raises(AuthError, match=r"no credentials of google.*missing\.json"):
        connect("http://127.0.0.1:1", identity="google")


def test_a_token_of_azure_is_the_managed_identitys(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("azure.identity")
    given = as_json({"access_token": "of-azure", "expires_on": "4102444800", "resource": "r", "token_type": "Bearer"})
    with replaying({"/identity": given}) as service, replaying({BUILD_INFO: success({})}) as server:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{service.url}/identity")
        monkeypatch.setenv("IDENTITY_HEADER", "secret")
        connection = connect(server.url, identity="azure")
        connection.json(BUILD_INFO)
        connection.json(BUILD_INFO)
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer of-azure"] * 2
    [request] = service.requests
    assert "prometheus.monitor.azure.com" in unquote(request.target)


def test_without_its_extra_a_cloud_is_a_usage_error() -> None:
    """In a process of its own, for here the libraries are loaded; the command line itself loads none of them."""
    libraries = {"aws": "awscrt", "google": "google.auth", "azure": "azure.identity"}
    script = (
        "import sys, gpureport.cli\n"
        f"for cloud, library in {libraries}.items():\n"
        f"    assert not {{*{libraries}.values()}} & sys.modules.keys()\n"
        "    sys.modules[library] = None\n"
        "    environ = {'GPUREPORT_PROMETHEUS__IDENTITY': cloud, 'AWS_REGION': 'eu-central-1'}\n"
        "    code = gpureport.cli.main(['doctor', '--prometheus-url', 'http://127.0.0.1:1', '--no-kubernetes'], environ)\n"
        "    del sys.modules[library]\n"
        "    print(cloud, code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines() == [f"{cloud} 2" for cloud in libraries], done.stderr
    assert [f'pip install "gpureport[{cloud}]"' in line for cloud, line in zip(libraries, done.stderr.splitlines(), strict=True)]


def test_an_identity_beside_a_token_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="replaces a token or a user"):
        connect("http://127.0.0.1:1", identity="aws", http="bearer_token: x")
