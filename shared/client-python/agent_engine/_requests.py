"""The parts of requests, and when one is repeated. No input or output: the same for both clients."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from .errors import AgentEngineError, ApiError, ConnectionFailed, WrongAnswer

Json = dict[str, Any]
Token = str | Callable[[str | None], Any] | None

#: If a server asks for a longer pause, the caller decides whether to wait.
MOST_RETRY_AFTER = 60.0
EVENTS = "text/event-stream"


@dataclass(frozen=True)
class Settings:
    """`attempts`: how often a request that may be repeated is sent. `resume`: how long a broken stream tries to reach
    a server.
    `request`: how long an answer may take. `stall`: how long a stream may be silent. Times are seconds."""

    attempts: int = 4
    resume: float = 30.0
    request: float = 30.0
    stall: float = 45.0


@dataclass(frozen=True)
class Call:
    """The parts of a request besides its method and path."""

    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    #: Returns the bytes of a body that is not JSON; called each time the request is sent.
    content: Callable[[], Any] | None = None
    key: str | None = None
    last_event_id: str | None = None
    traceparent: str | None = None
    timeout: float | None = None


#: The query of a request that estimates a start.
DRY = {"dry_run": "true"}


class Auto:
    """Means that a random key is made."""


AUTO = Auto()
Key = str | None | Auto


def key_of(given: Key) -> str | None:
    """The key of a request, a random one if none was given: it makes the request safe to repeat."""
    return f"auto-{secrets.token_hex(16)}" if isinstance(given, Auto) else given


def at(path: str, text: str) -> str:
    """Adds an id, or another text from outside, to a path."""
    return path + quote(text, safe="")


def backoff(failures: int, first: float, most: float = 5.0) -> float:
    """A random pause, whose upper limit doubles with each failure, so that many clients do not return at the same
    time.
    """
    return float(min(most, first * 2 ** (failures - 1)) * (0.5 + random.random() / 2))


def pause_before_repeat(cause: AgentEngineError, method: str, has_key: bool, failures: int) -> float | None:
    """`None` if the request must not be sent again. 429 refuses before anything is done. After any other failure the
    server may have carried out the request, so only requests that are safe to repeat are repeated.
    """
    is_safe = has_key or method in ("GET", "DELETE")
    pause = backoff(failures, 0.25)
    if isinstance(cause, WrongAnswer):
        return None
    if isinstance(cause, ConnectionFailed):
        return pause if is_safe else None
    if not isinstance(cause, ApiError):
        return None
    is_temporary = cause.status == 429 or (cause.status >= 500 and is_safe)
    pause = pause if cause.retry_after is None else cause.retry_after
    return pause if is_temporary and pause <= MOST_RETRY_AFTER else None
