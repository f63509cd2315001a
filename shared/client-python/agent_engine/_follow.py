"""Streams over as many connections as they take, each event once and in order."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ._transport import MOST_RETRY_AFTER, OpenStream, Transport, backoff
from .errors import AgentEngineError, ApiError, ConnectionFailed

T = TypeVar("T")

#: The events that end a run, of an agent, a flow or a plan.
LAST = frozenset(("done", "error", "plan_queued", "result", "plan_ended"))

_CONNECTION_CODES = frozenset(("worker_draining", "relay_unavailable", "slow_consumer", "stream_gap", "internal"))
_FINAL_WHEN_REPEATED = frozenset(("stream_gap", "internal"))


@dataclass(frozen=True)
class Event:
    """An event. `data` has the fields of the API document."""

    id: int
    event: str
    data: dict[str, Any]


def event_of(id: str, event: str, data: dict[str, Any]) -> Event:
    return Event(int(id or 0), event, data)


#: Whether an `error` is the end of what the stream tells of. The last two arguments: it repeats the last number; the code of the error that
#: ended the connection before.
IsEnd = Callable[[dict[str, Any], bool, str | None], bool]


def is_end_of_run(data: dict[str, Any], is_known: bool, before: str | None) -> bool:
    """Some errors that repeat the number of the last event end one connection only. Some of these are the end when they come twice in a row."""
    code = data.get("code", "")
    return not is_known or code not in _CONNECTION_CODES or (before == code and code in _FINAL_WHEN_REPEATED)


def is_end_of_flow(data: dict[str, Any], is_known: bool, before: str | None) -> bool:
    """An `error` without a trace id ends the stream and not the flow."""
    return "trace_id" in data


def is_passing(cause: AgentEngineError) -> bool:
    return isinstance(cause, ConnectionFailed) or (isinstance(cause, ApiError) and (cause.status == 429 or cause.status >= 500))


async def follow(
    transport: Transport,
    open_stream: Callable[[str], Awaitable[OpenStream]],
    make: Callable[[str, str, dict[str, Any]], T],
    *,
    after: str = "",
    is_end: IsEnd = lambda data, is_known, before: False,
    is_numbered: bool = True,
    may_retry: Callable[[AgentEngineError], bool] = is_passing,
    patience: float = float("inf"),
) -> AsyncGenerator[T, None]:
    """Yields what `make` makes of id, event and data, up to the last event, or until the server says that nothing follows (204). With `is_numbered` an event whose
    number is not above the last one is known."""
    outage = _Outage(transport.settings.resume, patience)
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
                    is_known = is_numbered and int(event.id or 0) <= (int(last or 0) or -1)  # 0 is the number of a warning ahead of the first event (D39.2).
                    is_error = event.event == "error"
                    if is_known and not is_error:
                        continue
                    data = json.loads(event.data)
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


class _Outage:
    """The time since a stream broke, and the pauses in it."""

    def __init__(self, resume: float, patience: float) -> None:
        self.retry: float | None = None
        self._resume = resume
        self._patience = patience
        self._failures = 0
        self._broken_since: float | None = None
        self._unanswered_since: float | None = None

    def is_answered(self) -> None:
        self._unanswered_since = None

    def is_over(self) -> None:
        self._failures = 0
        self._broken_since = None

    def pause(self, failure: AgentEngineError | None) -> float:
        now = time.monotonic()
        self._unanswered_since = now if self._unanswered_since is None else self._unanswered_since
        self._broken_since = now if self._broken_since is None else self._broken_since
        if now - self._unanswered_since > self._resume or now - self._broken_since > self._patience:
            raise ConnectionFailed("the stream broke and could not be resumed") from failure
        asked = failure.retry_after if isinstance(failure, ApiError) else self.retry
        if asked is None:
            self._failures += 1
            asked = backoff(self._failures, 0.1)
        return min(MOST_RETRY_AFTER, asked)
