"""What must be built anew over tables that stand already, when some of them are given other rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from gpureport.compute.query import Query, needed


def touched(
    queries: Mapping[str, Query], targets: Iterable[str], given: Collection[str], changed_params: Collection[str] = ()
) -> Iterator[Query]:
    """Those behind the targets that read what is given, or take a parameter that changed; themselves, and what reads them."""
    wanted, others = set(given), set(changed_params)
    for query in needed(queries, targets, given):
        if not wanted.isdisjoint(query.reads) or not others.isdisjoint(query.params):
            wanted.add(query.table)
            yield query
