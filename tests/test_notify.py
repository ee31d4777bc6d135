"""The answers of a report reach a chat and a mailbox, as data; a server that is not there costs a warning and no report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from golden_case import NOW
from prometheus.programs import free_port

from gpureport.cli import main
from gpureport.commands.work.notifying import notify
from gpureport.config.meaning import Notify
from gpureport.values.errors import CoverageError

HOSTILE = "team <!channel> `rm` & @here\r\nSubject: other"


@contextmanager
def webhook(status: int) -> Iterator[tuple[str, list[Any]]]:
    """A chat's server: the URL that it takes messages at, and their bodies."""
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/secret-token", bodies
        server.shutdown()


class Mailbox:
    """What a mail server took."""

    def __init__(self) -> None:
        self.letters: list[Any] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 (the library's name)
        self.letters.append((envelope.rcpt_tos, message_from_bytes(envelope.content, policy=policy.default)))
        return "250 OK"


@pytest.fixture
def mail() -> Iterator[tuple[str, list[Any]]]:
    """A mail server without encryption: its address, and its letters."""
    controller = Controller(Mailbox(), hostname="127.0.0.1", port=free_port())
    controller.start()
    try:
        yield f"127.0.0.1:{controller.port}", controller.handler.letters
    finally:
        controller.stop()


def secret(folder: Path, text: str) -> str:
    path = folder / "secret"
    path.write_text(f"{text}\n")
    return str(path)


def test_a_report_that_fails_the_run_too_sends_its_answers_to_the_chat_and_the_mailbox(
    recorded: Path, tmp_path: Path, mail: tuple[str, list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    with webhook(200) as (url, bodies):
        config = tmp_path / "gpureport.toml"
        config.write_text(f"""
            [report.notify]
            webhook_url_file = "{secret(tmp_path, url)}"
            smtp_server = "{mail[0]}"
            mail_from = "gpureport@example.com"
            mail_to = ["capacity@example.com", "sre@example.com"]
        """)
        asked = ["--config", config, "report", "--lake", recorded / "lake", "--since", "2026-11-20", "--until", "2026-11-21"]
        asked += ["--min-coverage", "0.99", "--only", "json", "--out", tmp_path / "out"]
        capsys.readouterr()
        assert main([*map(str, asked)], environ={}, now=NOW) == CoverageError.exit_code
    said = capsys.readouterr()
    assert f"{tmp_path / 'out' / 'summary.md'} is written, but data coverage is" in said.err
    printed = said.out.splitlines()
    assert printed[0].startswith("Capacity use: ")
    title, *block = bodies[0]["text"].splitlines()
    assert title.startswith("GPU usage report: ")
    assert [line.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&") for line in block] == ["```", *printed, "```"]
    ((receivers, letter),) = mail[1]
    assert receivers == ["capacity@example.com", "sre@example.com"]
    assert (letter["Subject"], letter.get_content().splitlines()) == (title, printed)


def test_names_are_data(tmp_path: Path, mail: tuple[str, list[Any]]) -> None:
    with webhook(200) as (url, bodies):
        settings = Notify(
            webhook_url_file=secret(tmp_path, url), smtp_server=mail[0], mail_from="gpureport@example.com", mail_to=("a@b.c",)
        )
        assert notify(settings, HOSTILE, [HOSTILE]) == []
    told = "team &lt;!channel&gt; 'rm' &amp; @here Subject: other"
    assert bodies == [{"text": f"{told}\n```\n{told}\n```"}]
    assert mail[1][0][1]["Subject"] == "team <!channel> `rm` & @here Subject: other"


def test_what_does_not_arrive_is_a_warning_without_the_secret(tmp_path: Path, mail: tuple[str, list[Any]]) -> None:
    mailed = {"smtp_server": mail[0], "mail_from": "a@b.c", "mail_to": ("a@b.c",)}
    with webhook(404) as (url, _):
        password = secret(tmp_path, url)
        refused = notify(Notify(webhook_url_file=password, smtp_login_file=password, **mailed), "title", ["line"])
    gone = notify(Notify(webhook_url_file=password, smtp_server="127.0.0.1:1", mail_from="a@b.c", mail_to=("a@b.c",)), "t", [])
    missing = notify(Notify(webhook_url_file=str(tmp_path / "nowhere")), "t", [])
    assert refused == [
        "the answers are not sent by webhook (status 404); check report.notify",
        "the answers are not sent by mail (the server offers no encryption, so no password is sent); check report.notify",
    ]
    assert gone == [
        "the answers are not sent by webhook (ConnectionError); check report.notify",
        "the answers are not sent by mail (Connection refused); check report.notify",
    ]
    assert missing == ["the answers are not sent by webhook (No such file or directory); check report.notify"]
    assert mail[1] == []


@pytest.mark.parametrize("half", [{"smtp_server": "mail"}, {"smtp_server": "user:word@mail"}])
def test_half_a_setting_is_refused(half: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"go together|the name of a mail server"):
        Notify(**half)
