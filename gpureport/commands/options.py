"""What the commands share: the configuration with its flags, the clock, the log, and groups of options."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpureport import pipeline
from gpureport.config import Config, load_config
from gpureport.errors import UsageError
from gpureport.log import Log
from gpureport.store import Place, parse_place
from gpureport.window import Window, parse_date, parse_period

if TYPE_CHECKING:
    from gpureport.pipeline import Reported

_SALT_CHARACTERS = 16

FORMATS = click.Choice(["table", "json", "csv"])


class Invocation:
    """What every command shares: configuration file, environment, the clock read once, and the log."""

    def __init__(self, config_path: Path | None, environ: Mapping[str, str], now: datetime, log: Log) -> None:
        self.config_path = config_path
        self.environ = environ
        self.now = now
        self.log = log

    def config(self, **flags: Any) -> Config:
        """The configuration with these flags over it; a double underscore stands for the dot of a section."""
        dotted = {name.replace("__", "."): value for name, value in flags.items()}
        config, warnings = load_config(self.config_path, self.environ, dotted)
        self.log.format = config.log_format
        for warning in warnings:
            self.log.warn(warning)
        return config

    def say(self, line: str) -> None:
        """One line of the log."""
        self.log.say(line)


class PlaceType(click.ParamType[Place]):
    """A folder, or an address on object storage."""

    name = "place"

    def convert(self, value: str | Place, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        """See ``parse_place``; UsageError for '', which would mean the folder that one happens to be in."""
        if value == "":
            raise UsageError(
                f"{param.opts[0] if param else 'a place'} is empty; give a folder (. is this one), or s3://BUCKET/PREFIX"
            )
        return parse_place(value)


class FolderType(click.ParamType[Path]):
    """A folder of this machine, for what cannot be on object storage."""

    name = "folder"

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; UsageError for an address."""
        place = parse_place(value)
        if isinstance(place, Path):
            return place
        raise UsageError(f"{place} is object storage; give a folder here, and copy from there what is to be elsewhere")


PLACE, FOLDER = PlaceType(), FolderType()
LAKE = click.option("--lake", type=PLACE, help="The lake: a folder or s3://BUCKET/PREFIX (default: lake).")
CLUSTER = click.option("--cluster", help="The cluster's name in the lake (default: default).")
OUT = click.option("--out", type=PLACE, help="Where to write: a folder or s3://BUCKET/PREFIX (default: out).")
DATE = click.option("--date", "day", help="UTC day, such as 2026-11-20 (default: yesterday).")
LOG_FORMAT = click.option(
    "--log-format", type=click.Choice(["text", "json"]), help="Form of the log on standard error (default: text)."
)
FORMAT = click.option("-o", "--output", type=FORMATS, default="table", show_default=True, help="How rows are printed.")


def connection_options(command: Any) -> Any:
    """The options that say where Prometheus is; secrets come from files or the environment alone."""
    for option in reversed(
        [
            click.option("--prometheus-url", "prometheus__url", help="Base URL, such as http://prometheus:9090."),
            click.option(
                "--read-path",
                "prometheus__read_path",
                type=click.Choice(["auto", "remote-read", "matrix", "victoria-metrics"]),
                help="How samples are fetched (default: auto, found by probing).",
            ),
            click.option("--bearer-token-file", "prometheus__bearer_token_file", help="File that holds a bearer token."),
            click.option(
                "--bearer-token-env", "prometheus__bearer_token_env", help="Environment variable that holds a bearer token."
            ),
            click.option("--username", "prometheus__username", help="User for basic authentication."),
            click.option("--password-file", "prometheus__password_file", help="File that holds the user's password."),
            click.option("--ca-file", "prometheus__ca_file", help="CA certificates to trust (PEM)."),
            click.option("--cert-file", "prometheus__cert_file", help="Client certificate (PEM)."),
            click.option("--key-file", "prometheus__key_file", help="Client key (PEM)."),
            click.option("--header", "headers", multiple=True, help="Extra header, such as 'X-Scope-OrgID: team'. Repeatable."),
            click.option(
                "--http-config", "prometheus__http_config_file", help="An HTTP client file as promtool reads it (YAML)."
            ),
        ]
    ):
        command = option(command)
    return command


def cluster_options(command: Any) -> Any:
    """The options that say which Kubernetes cluster to read."""
    for option in (
        click.option("--context", "kubernetes__context", help="Context of the kubeconfig (default: its current one)."),
        click.option(
            "--kubeconfig", "kubernetes__kubeconfig", help="Kubeconfig (default: KUBECONFIG, ~/.kube/config, or the pod's own)."
        ),
    ):
        command = option(command)
    return command


NO_KUBERNETES = click.option("--no-kubernetes", is_flag=True, help="Do not read the cluster's Kubernetes state.")


def prometheus_options(command: Any) -> Any:
    """The options of an export."""
    for option in (
        click.option("--keep-raw", "export__keep_raw", is_flag=True, default=None, help="Also keep every raw sample."),
        click.option(
            "--concurrency",
            "prometheus__max_concurrency",
            type=int,
            help="Worker processes, each with one connection (default: 2).",
        ),
    ):
        command = option(command)
    return connection_options(command)


def finished_day(invocation: Invocation, /, text: str | None) -> date:
    """The day asked for, or yesterday; a day that has not begun is a UsageError."""
    today = invocation.now.date()
    day = parse_date(text) if text else today - timedelta(days=1)
    if day > today:
        raise UsageError(f"{day} has not begun (today is {today} UTC); give an earlier --date")
    return day


def parse_headers(texts: Sequence[str]) -> dict[str, str] | None:
    """The headers of repeated ``--header 'Name: value'``; None for none, UsageError for what is not so."""
    pairs = [text.partition(":") for text in texts]
    if bad := [name for name, colon, _ in pairs if not (colon and name.strip())]:
        raise UsageError(f"--header {bad[0]!r} is not 'Name: value'")
    if any(name.strip().lower() == "authorization" for name, _, _ in pairs):  # every user of the machine can read a command line
        raise UsageError("a secret does not belong on a command line; give it by --bearer-token-file or --http-config")
    return {name.strip(): value.strip() for name, _, value in pairs} or None


def print_paths(paths: Sequence[Place]) -> None:
    """Paths, a line each, on standard output."""
    for path in paths:
        click.echo(str(path))


def period(invocation: Invocation, /, config: Config, since: str | None, until: str | None) -> Window:
    """The period asked for; without one the last complete week, or what the lake has of it."""
    if since is None:
        if until:
            raise UsageError("--until needs --since. Give both, or neither for the last complete week.")
        return pipeline.default_window(config)
    named = parse_period(since, invocation.now)
    return Window(named.start_at, parse_period(until, invocation.now).start_at) if until else named


def print_report(reported: Reported) -> None:
    """The report's answers, and on the last line where its page is."""
    for line in reported.answers:
        click.echo(line)
    click.echo(str(reported.files[0]))


def read_salt(file: Path | None) -> str:
    """The secret of a file, or a new one that nobody keeps; UsageError where the file holds none worth the name."""
    if file is None:
        return secrets.token_hex(32)
    try:
        salt = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read as text ({error}); check --salt-file") from None
    if len(salt) < _SALT_CHARACTERS:
        raise UsageError(f"{file} holds fewer than {_SALT_CHARACTERS} characters, which could be guessed; give a longer secret")
    return salt
