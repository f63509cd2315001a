"""A run, as its events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn

from ._follow import LAST, Event, IsEnd, event_of, follow, is_end_of_run, is_passing
from ._permissions import AsyncPermissionAsk, RunAsks
from ._transport import Call, Json, OpenStream, Transport, at
from ._typed import Schema, value_of
from .errors import ApiError, ConnectionFailed, RunFailed, RunLost

#: A server that answers over connections that break, and sends no event for this long, is given up. Permission requests wait for less.
_PATIENCE = 30 * 60.0
_NO_ID = "the answer has no X-Run-ID"

OnPermission = Callable[[AsyncPermissionAsk], Any]


@dataclass(frozen=True)
class RunResult:
    """The end of a good run. `output` is its text, blocks of it with a blank line between them, or the value of a run with a schema."""

    run_id: str
    output: Any
    #: The data of `done`. `None` when the run ended with its plan in the queue.
    usage: Json | None
    stop_reason: str
    plan_id: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class Start:
    """The request that starts a run."""

    path: str
    body: Json
    key: str | None
    schema: Schema | None = None


class AsyncRun:
    """It starts when it is read for the first time. A connection that breaks is resumed; each event comes once and in order. It has one reader:
    a second loop goes on where the first one stopped."""

    def __init__(
        self,
        transport: Transport,
        *,
        start: Start | None = None,
        id: str | None = None,
        after: int = 0,
        on_permission: OnPermission | None = None,
        session_of: Callable[[str], Awaitable[str]] | None = None,
        traceparent: str | None = None,
        is_end: IsEnd = is_end_of_run,
    ) -> None:
        #: Known once the server has taken the run.
        self.id = id
        #: The number of the newest event that was read. `engine.runs.resume(id, after=…)` goes on behind it.
        self.last_event_id = after
        self._transport = transport
        self._start = start
        self._traceparent = traceparent
        self._on_permission = on_permission
        self._is_end = is_end
        self._asks = RunAsks(transport, session_of or _same)
        self._texts: list[tuple[int, str]] = []
        self._turn = 0
        self._end: Event | None = None
        self._failure: BaseException | None = None
        self._is_sent = False
        self._events: AsyncGenerator[Event, None] | None = None
        self._early: list[Event] = []

    async def __aenter__(self) -> AsyncRun:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None) -> None:
        await self.leave()

    async def __aiter__(self) -> AsyncGenerator[Event, None]:
        """The events from here on. The `error` of a run that fails comes, too, and then `RunFailed` is raised."""
        while (event := await self._next()) is not None:
            yield event

    async def text(self) -> AsyncGenerator[str, None]:
        """The answer's text as it comes, with a blank line between its blocks."""
        pieces = TextPieces()
        while (event := await self._next()) is not None:
            if text := pieces.take(event):
                yield text

    async def result(self) -> RunResult:
        """Reads the run to its end. Raises `RunFailed`, `RunLost`, `ApiError` and `ConnectionFailed`."""
        while await self._next() is not None:
            pass
        output, end = "\n\n".join(text for _, text in self._texts), self._end or Event(0, "plan_queued", {})
        if end.event == "done":
            value = value_of(end.data["output"], self._start and self._start.schema) if "output" in end.data else output
            return RunResult(self.id or "", value, end.data, end.data["stop_reason"])
        return RunResult(self.id or "", output, None, "plan_queued", end.data.get("plan_id"), end.data.get("note"))

    async def started(self) -> str:
        """Starts the run. Returns its id once the server has taken it."""
        if self.id is None and (event := await self._read()) is not None:
            self._early.append(event)
        if self.id is None:
            raise ConnectionFailed(_NO_ID)
        return self.id

    async def cancel(self) -> None:
        """Ends the run at the server, with its model call, tools and sub-agents. Its stream ends with the `error` `cancelled`."""
        if self.id is None and not self._is_sent:
            self._failure = RunFailed({"error": "cancelled before it was started", "code": "cancelled"}, None)
        else:
            await self._transport.json("DELETE", at("/runs/", await self.started()))

    async def leave(self) -> None:
        """Stops reading. The server ends a run that nobody reads for a while."""
        events, self._events = self._events, None
        if events is not None:
            await events.aclose()

    async def _next(self) -> Event | None:
        event = self._early.pop(0) if self._early else await self._read()
        if event is not None:
            self._take(event)
        if self._end is not None:
            await self.leave()
        return event

    async def _read(self) -> Event | None:
        if self._failure is not None:
            raise self._failure
        if self._end is not None:
            return self._fail(self._end) if self._end.event == "error" else None
        if self._events is None:
            self._events = self._follow()
        try:
            return await self._events.__anext__()
        except StopAsyncIteration:
            return await self._find_end()
        except BaseException as failure:
            self._failure = self._failure or failure
            self._asks.close()
            raise

    def _fail(self, end: Event) -> NoReturn:
        raise RunFailed(end.data, self.id)

    def _take(self, event: Event) -> None:
        self.last_event_id = event.id
        if event.event == "turn_start":
            self._turn = event.data["turn_number"]
        if event.event == "text":
            self._texts.append((self._turn, event.data["text"]))
        if _is_recovery(event):
            self._texts = [each for each in self._texts if each[0] < event.data["detail"]["turn_number"]]
        if event.event in LAST:
            self._end = event
            self._asks.close()
        ask = self._asks.take(event, self.id or "")
        answer = self._on_permission
        if ask is not None and answer is not None:
            self._transport.io.beside(lambda: answer(ask), self._set_failure)

    def _set_failure(self, failure: BaseException) -> None:
        """A callback that raises ends the reading with the next event."""
        self._failure = self._failure or failure

    def _follow(self) -> AsyncGenerator[Event, None]:
        return follow(
            self._transport,
            self._open,
            event_of,
            after=str(self.last_event_id),
            is_end=self._is_end,
            may_retry=lambda cause: is_passing(cause) and self.id is not None,
            patience=_PATIENCE,
        )

    async def _open(self, last: str) -> OpenStream:
        if self.id is None:
            return await self._begin()
        call = Call(last_event_id=last, traceparent=self._traceparent)
        try:
            return await self._transport.open_stream(f"{at('/runs/', self.id)}/events", call)
        except ApiError as cause:
            if cause.status == 404:
                raise RunLost(self.id) from cause
            raise

    async def _begin(self) -> OpenStream:
        """Without an id, the key finds a run that was started."""
        start = self._start
        if start is None or (self._is_sent and start.key is None):
            raise ConnectionFailed(_NO_ID)
        self._is_sent = True
        stream = await self._transport.start_stream(start.path, Call(body=start.body, key=start.key, traceparent=self._traceparent))
        self.id = stream.run_id
        return stream

    async def _find_end(self) -> Event:
        """The end of a run of which no event is left, from its record."""
        run = await self._transport.json("GET", at("/runs/", self.id or ""))
        if run["status"] != "done":
            code = run.get("code", "internal")
            return Event(self.last_event_id, "error", {"error": f"the run has ended: {code}", "code": code, "suggestion": "Send the request again."})
        tokens = run.get("input_tokens", 0), run.get("output_tokens", 0)
        data = {
            "total_input_tokens": tokens[0],
            "total_output_tokens": tokens[1],
            "total_tokens": sum(tokens),
            "cost_usd": run.get("cost_usd", 0),
            "turn_count": run.get("turns", 0),
            "stop_reason": "end_turn",
        }
        return Event(self.last_event_id, "done", data)


class TextPieces:
    """The answer's text as the events bring it. Pure."""

    def __init__(self) -> None:
        self._shown = ""
        self._is_first = True
        self._turn = 0

    def take(self, event: Event) -> str:
        """The text that the event adds, which may be none."""
        if event.event == "turn_start":
            self._turn = event.data["turn_number"]
        # Before a later turn the rest of this one comes first, without increments.
        if _is_recovery(event) and event.data["detail"]["turn_number"] <= self._turn:
            self._shown = ""
        if event.event not in ("text_delta", "text"):
            return ""
        text: str = event.data["text"]
        if event.event == "text":  # A recorded run has no increments, so the rest of a block comes with its whole text.
            text = text[len(self._shown) :]
        gap = "" if self._shown or self._is_first or not text else "\n\n"
        self._shown = "" if event.event == "text" else self._shown + text
        self._is_first = False
        return gap + text


def _is_recovery(event: Event) -> bool:
    """Whether another server goes on with the run: what has come of the turn that it names is void."""
    return event.event == "warning" and bool(event.data["code"] == "run_recovered")


async def _same(run_id: str) -> str:
    return run_id
