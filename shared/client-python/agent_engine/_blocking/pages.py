# Generated from ../_async/pages.py by scripts/blocking-client.py: edit that file instead.
"""Lists of the API, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._blocking_io import Items
from .._documents import Page
from .._requests import Call, Json
from ..errors import WrongAnswer
from .transport import Transport


class Pages:
    """Iterate over all items, or read one page."""

    def __init__(self, transport: Transport, path: str, query: Mapping[str, Any] | None = None) -> None:
        self._transport = transport
        self._path = path
        self._query = query or {}

    def page(self, cursor: str | None = None) -> Page:
        """The page after a cursor, or the first one."""
        answer = self._transport.json("GET", self._path, Call(query={**self._query, "cursor": cursor}))
        # The first list in an answer contains its items.
        items = next((value for value in (answer or {}).values() if isinstance(value, list)), None)
        if items is None:
            raise WrongAnswer(answer)
        return Page(items, answer.get("next_cursor"))

    def __iter__(self) -> Items[Json]:
        cursor: str | None = None
        while True:
            page = self.page(cursor)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    def all(self, most: float = float("inf")) -> list[Json]:
        """All items, up to this many."""
        found: list[Json] = []
        items = self.__iter__()
        try:
            while len(found) < most:
                found.append(items.__next__())
        except StopIteration:
            pass
        finally:
            items.close()
        return found
