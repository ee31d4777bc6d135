"""Credentials in the order of the AWS SDKs: environment, profile of the shared files, web identity, container, machine.

The library itself reads keys in the environment, web identities (IRSA), containers (ECS, EKS Pod Identity) and instance metadata.
This module reads profiles: their keys, or the output of their ``credential_process``. ``aws configure export-credentials``
supports every login of the AWS CLI in this way.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping
from configparser import ConfigParser, Error
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.store.storage import Reach
from gpureport.values.errors import StoreError

if TYPE_CHECKING:
    from obstore.store import S3Credential

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Environment variables that hold the keys themselves."""
_OF_PROFILE = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url")
_OF_ENVIRONMENT = (
    *KEYS,
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
)
_LIBRARYS_OWN = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
_PROCESS_SECONDS = 60


def read_profile(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the active profile of the AWS shared files; empty where the environment has credentials or there are no files.

    StoreError where the named profile does not exist or the files cannot be read.
    """
    named = environ.get("AWS_PROFILE", "")
    if "AWS_ACCESS_KEY_ID" in environ or (not named and any(name in environ for name in _LIBRARYS_OWN)):
        return {}
    home = Path(environ.get("HOME") or "/")
    credentials = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials")
    settings = Path(environ.get("AWS_CONFIG_FILE") or home / ".aws" / "config")
    profile = named or "default"
    section = profile if profile == "default" else f"profile {profile}"
    found = {**_section(settings, section), **_section(credentials, profile)}
    if named and not found:
        raise StoreError(f"no profile {named!r} in {credentials} or {settings}; correct AWS_PROFILE")
    return found


def _section(file: Path, name: str) -> dict[str, str]:
    parser = ConfigParser(interpolation=None, default_section="")
    try:
        parser.read(file)
    except (Error, OSError, UnicodeDecodeError):
        raise StoreError(f"{file} is not what AWS tools write; correct it") from None  # the reason would quote a line of it
    return dict(parser[name]) if parser.has_section(name) else {}


def settings_of(reach: Reach, profile: Mapping[str, str]) -> dict[str, str]:
    """Return the library's settings. Configuration overrides the environment, and the environment overrides the profile."""
    found = {f"aws_{name.removeprefix('aws_')}": profile[name] for name in _OF_PROFILE if profile.get(name)}
    found |= {name.lower(): reach.environ[name] for name in _OF_ENVIRONMENT if reach.environ.get(name)}
    endpoint = reach.endpoint_url or found.pop("aws_endpoint_url_s3", "") or found.pop("aws_endpoint_url", "")
    found.pop("aws_endpoint_url_s3", None)
    if endpoint:  # path style: a host name for each bucket would need its own certificate and DNS entry
        found |= {"aws_endpoint_url": endpoint, "aws_virtual_hosted_style_request": "false"}
    return found


def of_process(command: str, environ: Mapping[str, str]) -> Callable[[], S3Credential]:
    """Return a provider that runs a command for credentials, again when they expire. StoreError where the output is not valid."""

    def fetch() -> S3Credential:
        try:
            done = subprocess.run(
                shlex.split(command), capture_output=True, timeout=_PROCESS_SECONDS, env=dict(environ), check=True
            )
            printed = json.loads(done.stdout)
            expires = printed.get("Expiration")
            return {
                "access_key_id": printed["AccessKeyId"],
                "secret_access_key": printed["SecretAccessKey"],
                "token": printed.get("SessionToken"),
                "expires_at": datetime.fromisoformat(expires) if expires else None,
            }
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError, AttributeError):
            raise StoreError("the profile's credential_process gives no credentials; run it by hand to see why") from None

    return fetch
