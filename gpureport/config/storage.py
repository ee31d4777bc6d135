"""Object storage under the lake or the report, where their addresses are ``s3://…``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from gpureport.config.section import Seconds, Section
from gpureport.store import KEYS, ObjectAddress, Place, Reach, parse_place
from gpureport.values.errors import UsageError


def _place(given: object) -> Place:
    if not isinstance(given, str | Path | ObjectAddress) or given == "":
        raise ValueError("write a folder, or s3://BUCKET/PREFIX")
    return parse_place(given)


ConfiguredPlace = Annotated[Place, BeforeValidator(_place)]
"""A folder or an address, as a text may name either."""


def _without_secrets(url: str) -> str:
    """A URL of a host; what is wrong is not repeated, for it may be a secret."""
    if not re.fullmatch(r"(https?://[^@/?#\s]+/?)?", url):
        raise UsageError("object_store.endpoint_url is http(s)://HOST[:PORT], without credentials and path; correct it")
    return url


class ObjectStore(Section):
    """Connection to the storage; credentials come from the environment, a profile or a role, never from here."""

    endpoint_url: Annotated[str, AfterValidator(_without_secrets)] = ""
    region: str = ""
    ca_file: str = ""
    credentials_file: str = ""
    profile: str = ""
    connect_timeout_seconds: Seconds = 10.0
    read_timeout_seconds: Seconds = 60.0
    retries: int = Field(4, ge=0, le=20)
    max_concurrency: int = Field(8, gt=0, le=64)
    cache: str = ""

    def reach(self, environ: Mapping[str, str]) -> Reach:
        """These settings with what the environment adds: credentials, and where copies lie if nothing says so."""
        given = self.model_dump(exclude={"credentials_file", "profile"})
        given["cache"] = Path(self.cache) if self.cache else _default_cache(environ)
        return Reach(**given, environ=self._named(environ))

    def _named(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment as if it named what is named here; keys of its own would go before those of a file."""
        named = {"AWS_SHARED_CREDENTIALS_FILE": self.credentials_file, "AWS_PROFILE": self.profile}
        chosen = {name: value for name, value in named.items() if value}
        return {name: value for name, value in environ.items() if not (chosen and name in KEYS)} | chosen


def _default_cache(environ: Mapping[str, str]) -> Path:
    if named := environ.get("XDG_CACHE_HOME"):
        return Path(named) / "gpureport"
    return Path(environ.get("HOME") or "/") / ".cache" / "gpureport"
