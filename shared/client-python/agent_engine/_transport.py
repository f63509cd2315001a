"""Requests: with the token, a deadline, and again where that is safe."""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from ._io import Io
from ._sse import SseEvent, SseParser
from .errors import AgentEngineError, ApiError, ConnectionFailed

T = TypeVar("T")

Json = dict[str, Any]
Token = str | Callable[[str | None], Any] | None

#: A longer pause that a server asks for is the caller's decision.
MOST_RETRY_AFTER = 60.0
_EVENTS = "text/event-stream"


@dataclass(frozen=True)
class Settings:
    """`attempts`: how often a request that may be repeated is sent. `resume`: how long a stream that broke looks for a server that answers.
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
    key: str | None = None
    last_event_id: str | None = None
    traceparent: str | None = None
    timeout: float | None = None


class Auto:
    """Stands for a key that is made at random."""


AUTO = Auto()
Key = str | None | Auto


def key_of(given: Key) -> str | None:
    """The key of a request, also of one that nobody named: it makes the request safe to repeat."""
    return f"auto-{secrets.token_hex(16)}" if isinstance(given, Auto) else given


def at(path: str, text: str) -> str:
    """A path that ends with an id, or another text from outside."""
    return path + quote(text, safe="")


def backoff(failures: int, first: float, most: float = 5.0) -> float:
    """Half to all of a pause that doubles with each failure, so that many clients do not come back at the same time."""
    return float(min(most, first * 2 ** (failures - 1)) * (0.5 + random.random() / 2))


class OpenStream:
    """A stream that the server has begun. 204 has no events."""

    def __init__(self, io: Io, response: httpx.Response) -> None:
        self._io = io
        self._response = response
        self._parser = SseParser()
        self.status = response.status_code
        self.run_id: str | None = response.headers.get("x-run-id")
        #: Whether a `reset` comes before the first event.
        self.is_reset = False

    @property
    def retry(self) -> float | None:
        return self._parser.retry

    async def leave(self) -> None:
        await self._io.leave(self._response)

    async def events(self) -> AsyncGenerator[SseEvent, None]:
        try:
            if self.is_reset:
                yield SseEvent("", "reset", "{}")
            async for chunk in self._io.chunks(self._response):
                for event in self._parser.feed(chunk):
                    yield event
        except httpx.HTTPError as cause:
            raise ConnectionFailed(f"the connection failed: {cause!r}") from cause
        finally:
            await self.leave()


class Transport:
    def __init__(self, io: Io, url: str, token: Token, headers: Callable[[], Mapping[str, str]] | None, settings: Settings) -> None:
        self.io = io
        self.settings = settings
        self._base = url.rstrip("/")
        self._token = token
        self._headers = headers
        self._behind = timedelta()

    def local_time(self, server_time: str) -> datetime:
        """A time of the server by this machine's clock, as far as the newest answer tells how it goes."""
        return datetime.fromisoformat(server_time.replace("Z", "+00:00")) - self._behind

    async def json(self, method: str, path: str, call: Call = Call()) -> Any:
        """The JSON of the answer; `None` for an empty one."""

        async def attempt() -> Any:
            response = await self._fetch(method, path, call, "application/json")
            text = await self._text(response)
            return json.loads(text) if text else None

        return await self._repeat(method, call, attempt)

    async def start_stream(self, path: str, call: Call) -> OpenStream:
        """A stream that was asked for with POST, as often as that is safe."""
        return await self._repeat("POST", call, lambda: self._stream("POST", path, call))

    async def open_stream(self, path: str, call: Call) -> OpenStream:
        """A stream, after one attempt."""
        return await self._stream("GET", path, call)

    async def _stream(self, method: str, path: str, call: Call) -> OpenStream:
        response = await self._fetch(method, path, call, _EVENTS)
        kind = response.headers.get("content-type", "of no type")
        if response.status_code == 200 and not kind.startswith(_EVENTS):
            await self.io.leave(response)  # Something between us and the server, which would answer in the same way again.
            raise AgentEngineError(f"the answer is no event stream but {kind}")
        # httpx has one time for all reads of a request. It is read again for each part of the body.
        response.request.extensions["timeout"]["read"] = self.settings.stall
        return OpenStream(self.io, response)

    async def _repeat(self, method: str, call: Call, attempt: Callable[[], Awaitable[T]]) -> T:
        failures = 0
        while True:
            try:
                return await attempt()
            except AgentEngineError as cause:
                failures += 1
                pause = pause_before_repeat(cause, method, call.key is not None, failures)
                if pause is None or failures >= self.settings.attempts:
                    raise
            await self.io.sleep(pause)

    async def _fetch(self, method: str, path: str, call: Call, accept: str) -> httpx.Response:
        if not callable(self._token):
            response = await self._send(method, path, call, accept, self._token)
        else:
            token = await self.io.call(self._token, None)
            response = await self._send(method, path, call, accept, token)
            if response.status_code == 401:
                await self.io.leave(response)
                response = await self._send(method, path, call, accept, await self.io.call(self._token, token))
        self._learn_time(response.headers.get("date"))
        if response.status_code >= 400:
            raise ApiError(response.status_code, response.headers, await self._text(response))
        return response

    async def _send(self, method: str, path: str, call: Call, accept: str, token: str | None) -> httpx.Response:
        own = {
            "accept": accept,
            "content-type": None if call.body is None else "application/json",
            "authorization": None if token is None else f"Bearer {token}",
            "idempotency-key": call.key,
            "last-event-id": call.last_event_id,
            "traceparent": call.traceparent,
        }
        headers = {**(self._headers() if self._headers else {}), **{name: value for name, value in own.items() if value is not None}}
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in call.query.items() if value is not None}
        seconds = call.timeout or self.settings.request
        request = self.io.build(
            method,
            self._base + path,
            params=query or None,
            headers=headers,
            content=None if call.body is None else json.dumps(call.body),
            timeout=seconds,
        )
        try:
            return await self.io.send(request)
        except httpx.HTTPError as cause:
            raise ConnectionFailed(f"the connection failed: {cause!r}") from cause

    async def _text(self, response: httpx.Response) -> str:
        try:
            return await self.io.text(response)
        except httpx.HTTPError as cause:
            raise ConnectionFailed(f"the connection failed: {cause!r}") from cause
        finally:
            await self.io.leave(response)

    def _learn_time(self, date: str | None) -> None:
        """The header has whole seconds, and the answer was on its way: a small difference is none."""
        try:
            behind = parsedate_to_datetime(date or "") - datetime.now(timezone.utc)
        except (TypeError, ValueError):
            return
        self._behind = behind if abs(behind) > timedelta(seconds=1.5) else timedelta()


def pause_before_repeat(cause: AgentEngineError, method: str, has_key: bool, failures: int) -> float | None:
    """`None` where the request must not be sent again. 429 refuses before anything is done. After any other failure the server may have
    done what it was asked for, so only requests that mean the same twice are repeated."""
    is_safe = has_key or method in ("GET", "DELETE")
    pause = backoff(failures, 0.25)
    if isinstance(cause, ConnectionFailed):
        return pause if is_safe else None
    if not isinstance(cause, ApiError):
        return None
    is_temporary = cause.status == 429 or (cause.status >= 500 and is_safe)
    pause = pause if cause.retry_after is None else cause.retry_after
    return pause if is_temporary and pause <= MOST_RETRY_AFTER else None
