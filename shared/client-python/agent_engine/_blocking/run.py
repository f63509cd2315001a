# Generated from ../_async/run.py by scripts/blocking-client.py: edit that file instead.
"""A run, as its events."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from .._blocking_io import Function, Items
from .._documents import RunResult, Start
from .._events import LAST, Event, IsEnd, TextPieces, event_of, is_end_of_run, is_passing, is_recovery
from .._requests import Call, Json, at
from .._typed import value_of
from ..errors import ApiError, ConnectionFailed, RunFailed, RunLost, WrongAnswer
from .follow import follow
from .permissions import PermissionAsk, RunAsks
from .tool_calls import OnToolCall, make_call
from .transport import OpenStream, Transport

#: The client gives up when connections open but break again, and no event comes for this long. Permission requests
#: wait for a shorter time.
_PATIENCE = 30 * 60.0
_NO_ID = "the answer has no X-Run-ID"

OnPermission = Callable[[PermissionAsk], Any]


class Run:
    """The run starts when it is read for the first time. A connection that breaks is resumed; each event comes once
    and in order. It has one reader: a second loop continues where the first one stopped.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        start: Start | None = None,
        id: str | None = None,
        after: int = 0,
        on_permission: OnPermission | None = None,
        on_tool_call: OnToolCall | None = None,
        session_of: Function[[str], str] | None = None,
        traceparent: str | None = None,
        is_end: IsEnd = is_end_of_run,
    ) -> None:
        #: Known once the server has taken the run.
        self.id = id
        #: The number of the newest event that was read. `engine.runs.resume(id, after=…)` continues after it.
        self.last_event_id = after
        self._transport = transport
        self._start = start
        self._traceparent = traceparent
        self._on_permission = on_permission
        self._on_tool_call = on_tool_call
        # A call comes again when another server continues the run.
        self._made: set[str] = set()
        self._is_end = is_end
        self._asks = RunAsks(transport, session_of or _same)
        self._texts: list[tuple[int, str]] = []
        self._turn = 0
        self._end: Event | None = None
        self._failure: BaseException | None = None
        self._is_sent = False
        self._events: Items[Event] | None = None
        self._early: list[Event] = []

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None) -> None:
        self.leave()

    def __iter__(self) -> Items[Event]:
        """The events from here on. A failed run yields its `error` event, and then `RunFailed` is raised."""
        while (event := self._next()) is not None:
            yield event

    def text(self) -> Items[str]:
        """The answer's text while it arrives, with a blank line between its blocks."""
        pieces = TextPieces()
        while (event := self._next()) is not None:
            if text := pieces.take(event):
                yield text

    def result(self) -> RunResult:
        """Reads the run to its end. Raises `RunFailed`, `RunLost`, `ApiError` and `ConnectionFailed`."""
        while self._next() is not None:
            pass
        output, end = "\n\n".join(text for _, text in self._texts), self._end or Event(0, "plan_queued", {})
        if end.event == "done":
            value = value_of(end.data["output"], self._start and self._start.schema) if "output" in end.data else output
            return RunResult(self.id or "", value, end.data, end.data["stop_reason"])
        return RunResult(self.id or "", output, None, "plan_queued", end.data.get("plan_id"), end.data.get("note"))

    def started(self) -> str:
        """Starts the run. Returns its id once the server has taken it."""
        if self.id is None and (event := self._read()) is not None:
            self._early.append(event)
        if self.id is None:
            raise ConnectionFailed(_NO_ID)
        return self.id

    def cancel(self) -> None:
        """Ends the run at the server, with its model call, tools and sub-agents. Its stream ends with the `error`
        `cancelled`.
        """
        if self.id is None and not self._is_sent:
            self._failure = RunFailed({"error": "cancelled before it was started", "code": "cancelled"}, None)
        else:
            self._transport.json("DELETE", at("/runs/", self.started()))

    def leave(self) -> None:
        """Stops reading. The server ends a run that nobody reads for a while."""
        events, self._events = self._events, None
        if events is not None:
            events.close()

    def _next(self) -> Event | None:
        event = self._early.pop(0) if self._early else self._read()
        try:
            if event is not None:
                self._take(event)
        except (KeyError, TypeError) as cause:
            self.leave()  # The garbage collector would close it at any time, even within another request.
            raise WrongAnswer(event) from cause
        if self._end is not None:
            self.leave()
        return event

    def _read(self) -> Event | None:
        if self._failure is not None:
            raise self._failure
        if self._end is not None:
            return self._fail(self._end) if self._end.event == "error" else None
        if self._events is None:
            self._events = self._follow()
        try:
            return self._events.__next__()
        except StopIteration:
            return self._find_end()
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
        if is_recovery(event):
            self._texts = [each for each in self._texts if each[0] < event.data["detail"]["turn_number"]]
        if event.event in LAST:
            self._end = event
            self._asks.close()
        ask = self._asks.take(event, self.id or "")
        answer = self._on_permission
        if ask is not None and answer is not None:
            self._transport.io.beside(lambda: answer(ask), self._set_failure)
        if event.event == "tool_use" and "expires_at" in event.data:
            self._make(event.data)

    def _make(self, call: Json) -> None:
        make = self._on_tool_call
        if make is None or call["id"] in self._made:
            return
        self._made.add(call["id"])
        self._transport.io.beside(lambda: make_call(self._transport, self.id or "", call, make), self._set_failure)

    def _set_failure(self, failure: BaseException) -> None:
        """A callback that raises ends the reading with the next event."""
        self._failure = self._failure or failure

    def _follow(self) -> Items[Event]:
        return follow(
            self._transport,
            self._open,
            event_of,
            after=str(self.last_event_id),
            is_end=self._is_end,
            may_retry=lambda cause: is_passing(cause) and self.id is not None,
            patience=_PATIENCE,
        )

    def _open(self, last: str) -> OpenStream:
        if self.id is None:
            return self._begin()
        call = Call(last_event_id=last, traceparent=self._traceparent)
        try:
            return self._transport.open_stream(f"{at('/runs/', self.id)}/events", call)
        except ApiError as cause:
            if cause.status == 404:
                raise RunLost(self.id) from cause
            raise

    def _begin(self) -> OpenStream:
        """If no id is known, the key finds a run that was started."""
        start = self._start
        if start is None or (self._is_sent and start.key is None):
            raise ConnectionFailed(_NO_ID)
        self._is_sent = True
        stream = self._transport.start_stream(start.path, Call(body=start.body, key=start.key, traceparent=self._traceparent))
        self.id = stream.run_id
        return stream

    def _find_end(self) -> Event:
        """The end of a run from its record, when its events are no longer kept."""
        run = self._transport.read("GET", at("/runs/", self.id or ""), has="status")
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


def _same(run_id: str) -> str:
    return run_id
