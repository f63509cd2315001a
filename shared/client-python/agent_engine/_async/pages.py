"""Lists of the API, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._async_io import AsyncItems
from .._documents import Page
from .._requests import Call, Json
from ..errors import WrongAnswer
from .transport import Transport


class AsyncPages:
    """Iterate over all items, or read one page."""

    def __init__(self, transport: Transport, path: str, query: Mapping[str, Any] | None = None) -> None:
        self._transport = transport
        self._path = path
        self._query = query or {}

    async def page(self, cursor: str | None = None) -> Page:
        """The page after a cursor, or the first one."""
        answer = await self._transport.json("GET", self._path, Call(query={**self._query, "cursor": cursor}))
        # The first list in an answer contains its items.
        items = next((value for value in (answer or {}).values() if isinstance(value, list)), None)
        if items is None:
            raise WrongAnswer(answer)
        return Page(items, answer.get("next_cursor"))

    async def __aiter__(self) -> AsyncItems[Json]:
        cursor: str | None = None
        while True:
            page = await self.page(cursor)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    async def all(self, most: float = float("inf")) -> list[Json]:
        """All items, up to this many."""
        found: list[Json] = []
        items = self.__aiter__()
        try:
            while len(found) < most:
                found.append(await items.__anext__())
        except StopAsyncIteration:
            pass
        finally:
            await items.aclose()
        return found
