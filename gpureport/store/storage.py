"""The one interface of the places that can hold a lake: a folder, or a prefix of a bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from gpureport.store.address import Place

Item = TypeVar("Item")
Result = TypeVar("Result")


class Found(NamedTuple):
    """An object's bytes, the tags by which it can be replaced, and when it was written by the storage's clock."""

    data: bytes
    tags: Mapping[str, str]
    modified_at: datetime


class Listed(NamedTuple):
    """An object of a list; its name is relative to the place, its time by the storage's clock."""

    name: str
    byte_count: int
    modified_at: datetime


class Storage(Protocol):
    """Named objects at a place. GpureportError, one sentence, where it does not serve. Picklable."""

    @property
    def place(self) -> Place:
        """Place of the storage."""

    @property
    def folder(self) -> Path:
        """The folder of this machine below which ``bring`` puts everything."""

    def get(self, name: str) -> Found | None:
        """An object whole; None where there is none."""

    def replace(self, name: str, old: Found | None, data: bytes) -> bool:
        """Write an object in place of what was read of it; False, and nothing written, where it is another by now."""

    def add(self, files: Mapping[str, Path]) -> None:
        """Move files of ``folder`` in as objects of these new names; all are durable when it returns."""

    def bring(self, name: str) -> Path:
        """An object as a file of ``folder``; it may not be there."""

    def forget(self, name: str) -> bool:
        """Remove the copy of an object; False where there is none, for ``bring`` names the object itself."""

    def objects(self) -> Iterator[Listed]:
        """Everything that is there."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; one that is not there is no error."""

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Do something with every item, several at a time; results in order."""

    def reached(self, name: str) -> tuple[str, dict[str, str]]:
        """Address and options of another library for what is below a name."""

    def errors(self) -> AbstractContextManager[None]:
        """Turn what is refused in the block into a sentence."""
