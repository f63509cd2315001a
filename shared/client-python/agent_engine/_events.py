"""The meaning of a stream's events. No input or output: the same for both clients."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._requests import MOST_RETRY_AFTER, backoff
from .errors import AgentEngineError, ApiError, ConnectionFailed, WrongAnswer

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


#: Whether an `error` ends the run or plan, and not only the connection. The last two arguments: whether it repeats the
#: last number; the code of the error that ended the previous connection.
IsEnd = Callable[[dict[str, Any], bool, str | None], bool]


def is_end_of_run(data: dict[str, Any], is_known: bool, before: str | None) -> bool:
    """Some errors that repeat the number of the last event end one connection only. Some of these end the run when
    they come twice in a row.
    """
    code = data.get("code", "")
    return not is_known or code not in _CONNECTION_CODES or (before == code and code in _FINAL_WHEN_REPEATED)


def is_end_of_flow(data: dict[str, Any], is_known: bool, before: str | None) -> bool:
    """An `error` without a trace id ends only the stream, not the flow."""
    return "trace_id" in data


def is_passing(cause: AgentEngineError) -> bool:
    if isinstance(cause, WrongAnswer):
        return False
    return isinstance(cause, ConnectionFailed) or (isinstance(cause, ApiError) and (cause.status == 429 or cause.status >= 500))


class Outage:
    """The time since a stream broke, and the pauses between attempts."""

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


class TextPieces:
    """Builds the answer's text from the events. No input or output."""

    def __init__(self) -> None:
        self._shown = ""
        self._is_first = True
        self._turn = 0

    def take(self, event: Event) -> str:
        """The text that the event adds; it may be empty."""
        if event.event == "turn_start":
            self._turn = event.data["turn_number"]
        # Before a later turn the rest of this one comes, without deltas.
        if is_recovery(event) and event.data["detail"]["turn_number"] <= self._turn:
            self._shown = ""
        if event.event not in ("text_delta", "text"):
            return ""
        text: str = event.data["text"]
        if event.event == "text":  # A recorded run has no deltas, so the rest of a block comes with its whole text.
            text = text[len(self._shown) :]
        gap = "" if self._shown or self._is_first or not text else "\n\n"
        self._shown = "" if event.event == "text" else self._shown + text
        self._is_first = self._is_first and not text
        return gap + text


def is_recovery(event: Event) -> bool:
    """Whether another server continues the run: the events of the turn that the warning names are void."""
    return event.event == "warning" and bool(event.data["code"] == "run_recovered")
