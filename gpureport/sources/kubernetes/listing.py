"""A list, page by page: the next page is fetched while the last one is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gpureport.errors import SourceError
from gpureport.runtime.stopping import left_when_stopped
from gpureport.sources.kubernetes.connection import ExpiredError
from gpureport.sources.kubernetes.reply import Page

RESTARTS = 2
"""How often a list that expired is read from its start again."""
_LONGEST_TAIL = 50
"""How often the rest of a list may expire before the server is given up."""

_MOST_PAGES, _MOST_OBJECTS = 5_000, 160_000
"""Kubernetes itself is made for 150,000 pods."""

Ask = Callable[[str], Page]
"""The page that a continue token leads to; '' is the first."""


def list_pages(ask: Ask) -> Iterator[Page]:
    """Every page of a list; where it expires, again from the start, at last with the server's inconsistent rest.

    A page with ``is_start`` begins the list, perhaps again. SourceError where the server never comes to an end.
    """
    expired_count, is_start, is_consistent = 0, True, True
    with left_when_stopped(ThreadPoolExecutor(1, "kubernetes-list")) as ahead:
        asked, coming = "", ahead.submit(ask, "")
        seen, object_count = set[str](), 0
        while True:
            try:
                page = coming.result()
            except ExpiredError as expired:
                expired_count += 1
                if expired_count > RESTARTS + _LONGEST_TAIL or (expired_count > RESTARTS and not expired.token):
                    raise
                is_start = expired_count <= RESTARTS
                is_consistent = is_start
                asked = "" if is_start else expired.token
                coming = ahead.submit(ask, asked)
                continue
            if is_start:
                seen, object_count = set[str](), 0
            object_count += len(page.items)
            if token := page.continue_token:
                if token in seen:
                    raise SourceError("the server gives the same page again and again; check any proxy in between")
                seen.add(token)
                if len(seen) > _MOST_PAGES or object_count > _MOST_OBJECTS:
                    raise SourceError(
                        f"a list does not end after {len(seen):,} pages and {object_count:,} objects; check the server"
                    )
                asked, coming = token, ahead.submit(ask, token)
            yield replace(page, is_start=is_start, is_consistent=is_consistent)
            is_start = False
            if not token:
                return
