"""Streams over as many connections as they take, each event once and in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from .._async_io import AsyncFunction, AsyncItems
from .._events import LAST, IsEnd, Outage, is_passing
from ..errors import AgentEngineError, WrongAnswer, object_in
from .transport import OpenStream, Transport

T = TypeVar("T")

async def follow(
    transport: Transport,
    open_stream: AsyncFunction[[str], OpenStream],
    make: Callable[[str, str, dict[str, Any]], T],
    *,
    after: str = "",
    is_end: IsEnd = lambda data, is_known, before: False,
    is_numbered: bool = True,
    may_retry: Callable[[AgentEngineError], bool] = is_passing,
    patience: float = float("inf"),
) -> AsyncItems[T]:
    """Yields what `make` returns for id, event and data, up to the last event, or until the server says that nothing
    follows (204). With `is_numbered` an event whose number is not above the last one is skipped.
    """
    outage = Outage(transport.settings.resume, patience)
    last, before = after, None
    while True:
        failure: AgentEngineError | None = None
        try:
            stream = await open_stream(last)
            if stream.status == 204:
                await stream.leave()
                return
            outage.is_answered()
            try:
                async for event in stream.events():
                    if is_numbered and not re.fullmatch("[0-9]{0,15}", event.id):
                        raise WrongAnswer(event.id)
                    is_known = is_numbered and int(event.id or 0) <= (int(last or 0) or -1)  # 0: a warning before the first event (D39.2)
                    is_error = event.event == "error"
                    if is_known and not is_error:
                        continue
                    data = object_in(event.data)
                    is_last = is_end(data, is_known, before) if is_error else event.event in LAST
                    before = data.get("code") if is_error else None
                    if is_error and not is_last:
                        break
                    last = event.id
                    outage.is_over()
                    yield make(event.id, event.event, data)
                    if is_last:
                        return
                outage.retry = stream.retry
            finally:
                await stream.leave()
        except AgentEngineError as cause:
            if not may_retry(cause):
                raise
            failure = cause
        await transport.io.sleep(outage.pause(failure))
