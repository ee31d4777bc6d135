"""A folder of raw replies, as ``kubectl get --raw`` prints them; what a file holds is given by its content, not its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from gpureport.collect.sources.kubernetes.reply import Page, as_page
from gpureport.collect.state.fields import Object, mapping, text
from gpureport.values.errors import SourceError, UsageError
from gpureport.values.window import parse_instant

OBSERVED_AT = "observed_at.txt"
_CHECKPOINTS = "kubelet_internal_checkpoint*"


_NO_FOLDER = "{} is not a folder; give one with replies of the API server, such as pods.json"


@dataclass(frozen=True)
class FileReply:
    """One file: its lists (several where kubectl mixed kinds), or the reply itself where it is no list."""

    file: Path
    pages: tuple[Page, ...]
    other: Object


def read_folder(folder: Path) -> Iterator[FileReply]:
    """Every JSON file of the folder and kubelet checkpoints, in order of name, one in memory at a time.

    SourceError where the folder is not there, holds none, or one of them is no JSON.
    """
    if not folder.is_dir():
        raise SourceError(_NO_FOLDER.format(folder))
    files = sorted({*folder.glob("*.json"), *folder.glob(_CHECKPOINTS)})
    if not files:
        raise SourceError(f"{folder} holds no JSON; save replies there, as in: kubectl get --raw /api/v1/pods > pods.json")
    for file in files:
        reply = _parsed(file)
        pages = tuple(_pages(reply))
        yield FileReply(file, pages, {} if pages else mapping(reply))


def _parsed(file: Path) -> Any:
    try:
        return orjson.loads(file.read_bytes())
    except OSError as error:
        raise SourceError(f"{file} cannot be read ({error.strerror}); check the folder") from error
    except orjson.JSONDecodeError as error:
        raise SourceError(f"{file} is not JSON ({error}); it may have been cut off: save it again") from None


def _pages(reply: Any) -> Iterator[Page]:
    """The reply's list; kubectl's own ``List`` holds objects of any kind, each with its name."""
    page = as_page(reply)
    if page is None or page.kind:
        yield from [page] if page else []
        return
    kinds = dict.fromkeys((text(item.get("kind")), text(item.get("apiVersion"))) for item in page.items)
    for kind, version in kinds:
        chosen = [item for item in page.items if (item.get("kind"), item.get("apiVersion")) == (kind, version)]
        yield replace(page, kind=kind, api_version=version, items=chosen)


def read_observed_at(folder: Path) -> datetime:
    """Time of the saved replies; UsageError where ``observed_at.txt`` is not a time, SourceError without the folder."""
    file = folder / OBSERVED_AT
    if not folder.is_dir():
        raise SourceError(_NO_FOLDER.format(folder))
    try:
        written = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise UsageError(
            f"{folder} does not say when it was saved; give --observed-at 2026-11-21T01:46:21Z, or write that into {OBSERVED_AT}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{file} cannot be read ({error}); give --observed-at") from error
    return parse_instant(written)
