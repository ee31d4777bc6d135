"""Place of a lake or a report: a folder, or ``s3://BUCKET/PREFIX`` (``gs://``, ``az://``), and the connection to that storage."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpureport.values.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
SCHEMES = ("s3", "gs", "az")
_PREFIX = re.compile(r"[^\x00-\x1f\x7f\\?#@]*")


@dataclass(frozen=True)
class Reach:
    """Connection to the storage; '' leaves the setting to the environment and to AWS' shared files."""

    endpoint_url: str = ""
    region: str = ""
    ca_file: str = ""
    read_timeout_seconds: float = 60.0
    retries: int = 4
    cache: Path = Path(".cache/gpureport")
    """Folder for copies of objects."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False, hash=False)
    """Sources of credentials (``gpureport.store.credentials``)."""


@dataclass(frozen=True)
class ObjectAddress:
    """A prefix of a bucket, or of a container of Azure; as text ``s3://bucket/prefix``."""

    bucket: str
    prefix: str = ""
    reach: Reach = Reach()
    scheme: str = "s3"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")

    def __truediv__(self, name: str) -> ObjectAddress:
        return replace(self, prefix=f"{self.prefix}/{name}".lstrip("/"))

    @property
    def cache(self) -> Path:
        """The folder for copies of what lies here, and of nothing else."""
        where = hashlib.sha256(f"{self.reach.endpoint_url}\n{self}".encode()).hexdigest()[:16]
        return self.reach.cache / where


Place = Path | ObjectAddress


def parse_place(text: str | Path | ObjectAddress) -> Place:
    """A folder, or the address that a text with a scheme means; UsageError for another scheme and for no address.

    What is wrong is not repeated where it may hold a secret.
    """
    scheme = _SCHEME.fullmatch(text) if isinstance(text, str) else None
    if scheme is None:
        return Path(text) if isinstance(text, str) else text
    if scheme[1].lower() not in SCHEMES:
        raise UsageError(
            f"{scheme[1]}:// is nothing that gpureport reads or writes; give a folder, or s3://BUCKET/PREFIX (gs://, az://)"
        )
    bucket, _, prefix = scheme[2].partition("/")
    parts = [part for part in prefix.split("/") if part]
    if not _BUCKET.fullmatch(bucket) or not _PREFIX.fullmatch(prefix) or {".", ".."}.intersection(parts):
        raise UsageError(
            "an address on object storage is s3://BUCKET/PREFIX (gs://, az://), of plain characters and without credentials; "
            "those come from the environment, a profile or a role"
        )
    return ObjectAddress(bucket, "/".join(parts), scheme=scheme[1].lower())
