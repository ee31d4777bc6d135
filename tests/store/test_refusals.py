"""A storage that does not serve costs one sentence and an exit code, and no secret."""

from __future__ import annotations

import gzip
import json
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

from gpureport.cli import main
from gpureport.store import Bucket, ObjectAddress
from gpureport.store.storage import Reach
from gpureport.values.errors import StoreError

from .changes import export
from .servers import BUCKET, KEYS

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def environ(rclone_url: str, tmp_path: Path) -> dict[str, str]:
    """How the storage is reached from a shell."""
    return {**KEYS, "HOME": str(tmp_path), "GPUREPORT_OBJECT_STORE__ENDPOINT_URL": rclone_url}


@pytest.fixture
def silent_url() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def error_of(capfd: pytest.CaptureFixture[str], environ: dict[str, str], *arguments: str, code: int = 1) -> str:
    """What a command says that must fail."""
    assert main(arguments, environ=environ, now=NOW) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in err
    return err


def compute(where: str = f"s3://{BUCKET}/lake") -> tuple[str, ...]:
    return ("compute", "--date", "2026-11-20", "--lake", where)


def test_a_bucket_that_is_not_there(capfd: pytest.CaptureFixture[str], environ: dict[str, str]) -> None:
    assert "has no bucket no-such-bucket; make it" in error_of(capfd, environ, *compute("s3://no-such-bucket/lake"))


def test_a_lake_that_is_not_there(capfd: pytest.CaptureFixture[str], environ: dict[str, str]) -> None:
    assert "there is no lake at s3://lake-bucket/lake; fill one" in error_of(capfd, environ, *compute())


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
def test_wrong_credentials(capfd: pytest.CaptureFixture[str], environ: dict[str, str], name: str) -> None:
    text = error_of(capfd, environ | {name: "wrong-planted-value"}, *compute())
    assert "refuses these credentials for s3://lake-bucket/lake" in text
    assert "wrong-planted-value" not in text


def test_no_connection(capfd: pytest.CaptureFixture[str], environ: dict[str, str]) -> None:
    own = environ | {"GPUREPORT_OBJECT_STORE__ENDPOINT_URL": "http://127.0.0.1:9"}
    assert "cannot reach http://127.0.0.1:9 for s3://lake-bucket/lake (no connection)" in error_of(capfd, own, *compute())


def test_no_answer(environ: dict[str, str], silent_url: str) -> None:
    reach = Reach(silent_url, read_timeout_seconds=1, retries=0, environ=environ)
    with pytest.raises(StoreError, match=f"cannot reach {silent_url} for s3://lake-bucket/lake \\(no answer in time\\)"):
        Bucket(ObjectAddress(BUCKET, "lake", reach)).get("gpureport-lake.json.gz")


ANSWERS: dict[str, tuple[Callable[[], bytes], int | None, str]] = {
    "that is endless": (lambda: bytes(1 << 20), 1 << 40, "has 1,099,511,627,776 bytes and is nothing that gpureport wrote"),
    "that unpacks without end": (
        lambda: gzip.compress(b" " * (1 << 28) + b"{}", 1),
        None,
        "is damaged (not whole, or more than 256 MiB)",
    ),
    "that is cut off": (lambda: gzip.compress(b"{}")[:-4], 18, "is damaged (not whole"),
}


@contextmanager
def answering(reply: Callable[[BaseHTTPRequestHandler], tuple[bytes, int]]) -> Iterator[str]:
    """A storage that answers every question with a body, and says that it has so many bytes."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body, size = reply(self)
            self.send_response(200)
            headers = {"Content-Length": str(size), "ETag": '"x"', "Last-Modified": "Fri, 20 Nov 2026 00:00:00 GMT"}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)
            self.close_connection = size != len(body)

        def log_message(self, *_: object) -> None:
            """Not on the tests' output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ANSWERS)
def test_a_root(capfd: pytest.CaptureFixture[str], environ: dict[str, str], name: str) -> None:
    make, size, sentence = ANSWERS[name]
    body = make()
    with answering(lambda _: (body, size or len(body))) as url:
        assert sentence in error_of(capfd, environ | {"GPUREPORT_OBJECT_STORE__ENDPOINT_URL": url}, *compute())


def test_a_list_that_does_not_end(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page names the next; 30 pages of 1,000 are more than the 20,000 objects that there may be here."""
    monkeypatch.setattr("gpureport.store.bucket._MOST_OBJECTS", 20_000)
    number = count()

    def page(_: object) -> tuple[bytes, int]:
        at = next(number)
        each = "".join(
            f"<Contents><Key>lake/{at}-{n}</Key><LastModified>2026-11-20T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
            for n in range(1000)
        )
        body = f"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>{at}</NextContinuationToken>{each}"
        return (whole := f"{body}</ListBucketResult>".encode()), len(whole)

    with answering(page) as url, pytest.raises(StoreError, match="does not end"):
        list(Bucket(ObjectAddress(BUCKET, "lake", Reach(url, retries=0, environ=environ))).objects())


@pytest.mark.parametrize("address", ["gcs://bucket/lake", "abfss://bucket/lake", "file:///lake"])
def test_other_schemes(capfd: pytest.CaptureFixture[str], environ: dict[str, str], address: str) -> None:
    assert "is nothing that gpureport reads or writes; give a folder, or s3://" in error_of(
        capfd, environ, *compute(address), code=2
    )


@pytest.mark.parametrize("address", ["s3://", "s3://KEY:planted@bucket/x", "s3://b/a/../c", "s3://bucket/x?planted", "s3:///x"])
def test_addresses_that_are_none(capfd: pytest.CaptureFixture[str], environ: dict[str, str], address: str) -> None:
    text = error_of(capfd, environ, *compute(address), code=2)
    assert "an address on object storage is s3://BUCKET/PREFIX" in text
    assert "planted" not in text


@pytest.mark.parametrize("command", [["demo"], ["simulate", "--gpus", "8"]], ids=lambda command: command[0])
def test_what_must_be_a_folder(capfd: pytest.CaptureFixture[str], environ: dict[str, str], command: list[str]) -> None:
    assert "is object storage; give a folder here" in error_of(capfd, environ, *command, "--out", "s3://bucket/out", code=2)


def test_an_endpoint_with_a_password_is_not_repeated(capfd: pytest.CaptureFixture[str], environ: dict[str, str]) -> None:
    own = environ | {"GPUREPORT_OBJECT_STORE__ENDPOINT_URL": "http://me:planted@127.0.0.1:9"}
    text = error_of(capfd, own, *compute(), code=2)
    assert "object_store.endpoint_url is http(s)://HOST" in text
    assert "planted" not in text


def test_a_cache_that_cannot_be_written(capfd: pytest.CaptureFixture[str], environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    own = environ | {"XDG_CACHE_HOME": str(tmp_path / "file"), "GPUREPORT_LAKE": f"s3://{BUCKET}/new"}
    fixture = Path(__file__).parents[2] / "data" / "fixtures" / "h200-recording" / "metrics.openmetrics.txt.gz"
    assert "set XDG_CACHE_HOME to another folder" in error_of(capfd, own, "import", str(fixture))


def _profile(folder: Path, *lines: str) -> dict[str, str]:
    (folder / ".aws").mkdir()
    (folder / ".aws" / "credentials").write_text("\n".join(["[night]", *lines]) + "\n")
    return {"AWS_PROFILE": "night", "HOME": str(folder)}


def test_a_profiles_keys_do(capfd: pytest.CaptureFixture[str], environ: dict[str, str], tmp_path: Path) -> None:
    profile = _profile(tmp_path, *(f"{name.lower()} = {value}" for name, value in KEYS.items()))
    own = {name: value for name, value in environ.items() if name not in KEYS} | profile
    assert "there is no lake" in error_of(capfd, own, *compute())
    assert "no profile 'day'" in error_of(capfd, own | {"AWS_PROFILE": "day"}, *compute())


def test_what_a_profiles_process_prints_does(capfd: pytest.CaptureFixture[str], environ: dict[str, str], tmp_path: Path) -> None:
    credentials = {"Version": 1, "AccessKeyId": KEYS["AWS_ACCESS_KEY_ID"], "SecretAccessKey": KEYS["AWS_SECRET_ACCESS_KEY"]}
    script = tmp_path / "login"
    script.write_text(f"#!/bin/sh\necho '{json.dumps(credentials)}'\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    own = {name: value for name, value in environ.items() if name not in KEYS}
    own |= _profile(tmp_path, f"credential_process = {script}")
    assert "there is no lake" in error_of(capfd, own, *compute())
    for fault in ("echo planted >&2; exit 1", "echo '[\"planted\"]'"):
        script.write_text(f"#!/bin/sh\n{fault}\n")
        text = error_of(capfd, own, *compute())
        assert "credential_process gives no credentials" in text
        assert "planted" not in text


def test_an_account_that_is_not_named(capfd: pytest.CaptureFixture[str], environ: dict[str, str]) -> None:
    text = error_of(capfd, environ, *compute("az://bucket/lake"))
    assert "az://bucket/lake cannot be read or written" in text and "check object_store and the environment" in text


def test_migrate_says_that_there_is_nothing_to_do(
    capfd: pytest.CaptureFixture[str], environ: dict[str, str], moto_url: str
) -> None:
    from gpureport.config import load_config

    environ = environ | {"GPUREPORT_OBJECT_STORE__ENDPOINT_URL": moto_url}
    lake = f"s3://{BUCKET}/to-migrate"
    export(load_config(None, environ, {"lake": lake})[0].lake, 1)
    assert main(["migrate", "--lake", lake], environ=environ, now=NOW) == 0
    assert "already" in capfd.readouterr().err
