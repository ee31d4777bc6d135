"""Rows of ``day.quota_amount`` as the quotas that the schedulers' rules know."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from gpureport.schedulers.model import Quota, Terms

TERMS = ("guaranteed_native", "cap_native", "weight", "deserved_native", "borrowing_limit_native", "lending_limit_native")
"""Columns of a quota's terms, in the order of ``model.Terms``."""
_OWN = ("system", "quota", "parent", "is_parent", "tree", "scopes", "priority", "may_lend", "created_at_ms", "uid", "resource")
_SAID = itemgetter(*_OWN, *TERMS)

Row = dict[str, Any]


class QuotaRows:
    """Quotas by what rows say of them: one object for all that say the same, for quotas change rarely."""

    def __init__(self, policies: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._known: dict[tuple[Any, ...], Quota] = {}
        self._policies = policies or {}

    def quota(self, row: Row) -> Quota:
        """The row's quota, with its terms of the row's resource; ``created_at_ms`` stands beside the table's own columns."""
        key = (*_SAID(row), *row["namespaces"])
        if key not in self._known:
            self._known[key] = Quota(
                system=row["system"],
                name=row["quota"],
                terms={row["resource"]: Terms(*(row[name] for name in TERMS))},
                parent=row["parent"],
                is_parent=row["is_parent"],
                namespaces=tuple(row["namespaces"]),
                tree=row["tree"],
                scopes=row["scopes"] or "",
                priority=row["priority"],
                may_lend=row["may_lend"],
                created_at_ms=row["created_at_ms"],
                uid=row["uid"],
                policy=self._policies.get(row["quota"], {}),
            )
        return self._known[key]
