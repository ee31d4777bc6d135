"""Answers of a report, sent to a chat and by mail. The report is already written, so a failure is only a warning."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from pathlib import Path

import requests

from gpureport.collect.sources.exchange import Deadline
from gpureport.collect.sources.prometheus import session
from gpureport.config.meaning import Notify
from gpureport.values.text.safe import printable

_SECONDS = 30
_IN_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})
"""Replacements in a block of code: with them, no name in the data mentions people or becomes a link."""


def notify(settings: Notify, title: str, lines: Sequence[str]) -> list[str]:
    """Send the lines to every configured destination; return a sentence for each destination that failed."""
    failures = []
    title, lines = _line(title), [_line(each) for each in lines]
    for way, is_wanted, send in (("webhook", settings.webhook_url_file, _post), ("mail", settings.mail_to, _mail)):
        if is_wanted:
            try:
                send(settings, title, lines)
            except (OSError, ValueError, smtplib.SMTPException) as error:
                failures.append(f"the answers are not sent by {way} ({_reason(error)}); check report.notify")
    return failures


def _line(text: str) -> str:
    return printable(" ".join(text.split()))


def _reason(error: Exception) -> str:
    """Return the reason of a failure; of a request only its kind: its text has the URL, which lets anyone write to the chat."""
    if isinstance(error, requests.RequestException):
        return type(error).__name__
    return getattr(error, "strerror", None) or _line(str(error))


def _secret(file: str) -> str:
    return Path(file).read_text(encoding="utf-8").strip()


def _post(settings: Notify, title: str, lines: Sequence[str]) -> None:
    """Post JSON with a text, as Slack, Mattermost, Google Chat and Rocket.Chat accept it."""
    text = "\n".join([title.translate(_IN_MARKUP), "```", *(each.translate(_IN_MARKUP) for each in lines), "```"])
    url = _secret(settings.webhook_url_file)
    with (
        Deadline(_SECONDS),
        session() as http,
        http.post(url, json={"text": text}, timeout=_SECONDS, allow_redirects=False, stream=True) as reply,
    ):
        if reply.status_code >= 300:
            raise OSError(f"status {reply.status_code}")


def _mail(settings: Notify, title: str, lines: Sequence[str]) -> None:
    """Send plain text, encrypted if the server can do it. A password is never sent without encryption."""
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = title, settings.mail_from, ", ".join(settings.mail_to)
    message.set_content("\n".join(lines) + "\n")
    host, _, port = settings.smtp_server.partition(":")
    with smtplib.SMTP(host, int(port or 25), timeout=_SECONDS) as server:
        server.ehlo()
        if server.has_extn("starttls"):
            server.starttls(context=ssl.create_default_context())
        elif settings.smtp_login_file:
            raise OSError("the server offers no encryption, so no password is sent")
        if settings.smtp_login_file:
            user, _, password = _secret(settings.smtp_login_file).partition(":")
            server.login(user, password)
        server.send_message(message)
