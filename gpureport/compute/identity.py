"""Identity of facts: the revision of each kept table, and the settings that change them, by value.

Facts of another version but of the same revisions are the same facts. An older version recorded neither: its tables are of the
first revision, its settings unknown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpureport.compute.query import Query, of_life

_REVISIONS, _SETTINGS = "revisions", "settings"


@dataclass(frozen=True)
class MadeWith:
    """Revisions above the first by table, and settings by name, both as JSON; '' for settings that nobody recorded."""

    revisions: str
    settings: str

    @property
    def entries(self) -> dict[str, str]:
        """Identity as entries of the lake's root."""
        return {_REVISIONS: self.revisions, _SETTINGS: self.settings}

    def has_other_settings(self, other: MadeWith) -> bool:
        """Whether settings differ, as far as they are known."""
        return bool(self.settings and other.settings) and self.settings != other.settings

    def revised(self, other: MadeWith) -> list[str]:
        """The tables of which the other one has another revision."""
        own, theirs = json.loads(self.revisions), json.loads(other.revisions)
        return sorted(table for table in {*own, *theirs} if own.get(table, 1) != theirs.get(table, 1))

    def differences(self, other: MadeWith) -> str:
        """The settings that the other one has with another value, and both values."""
        own, theirs = json.loads(self.settings), json.loads(other.settings)
        names = sorted(name for name in {*own, *theirs} if own.get(name) != theirs.get(name))
        return ", ".join(f"{name} {json.dumps(own.get(name))} instead of {json.dumps(theirs.get(name))}" for name in names)


def made_with(queries: Mapping[str, Query], settings: Mapping[str, Any]) -> MadeWith:
    """Identity of facts that are made now."""
    revisions = {table: queries[table].revision for table in of_life(queries, "facts") if queries[table].revision > 1}
    return MadeWith(json.dumps(revisions, sort_keys=True), json.dumps(settings, sort_keys=True))


def recorded(note: Mapping[str, str]) -> MadeWith:
    """Identity recorded with a day's facts."""
    return MadeWith(note.get(_REVISIONS, "{}"), note.get(_SETTINGS, ""))
