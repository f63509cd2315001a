# Generated from ../_async/transport.py by scripts/blocking-client.py: edit that file instead.
"""Sends requests with the token and a deadline, and repeats them if that is safe."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from .._blocking_io import Function, Io, Items
from .._requests import EVENTS, Call, Json, Settings, Token, pause_before_repeat
from .._sse import SseEvent, SseParser
from ..errors import AgentEngineError, ApiError, ConnectionFailed, WrongAnswer, object_in

T = TypeVar("T")

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

    def leave(self) -> None:
        self._io.leave(self._response)

    def events(self) -> Items[SseEvent]:
        try:
            if self.is_reset:
                yield SseEvent("", "reset", "{}")
            for chunk in self._io.chunks(self._response):
                for event in self._parser.feed(chunk):
                    yield event
        except ValueError as cause:  # The event has no end.
            raise WrongAnswer(str(cause)) from cause
        except httpx.HTTPError as cause:
            raise ConnectionFailed(f"the connection failed: {cause!r}") from cause
        finally:
            self.leave()


class Transport:
    def __init__(self, io: Io, url: str, token: Token, headers: Callable[[], Mapping[str, str]] | None, settings: Settings) -> None:
        self.io = io
        self.settings = settings
        self._base = url.rstrip("/")
        self._token = token
        self._headers = headers
        self._behind = timedelta()

    def local_time(self, server_time: str) -> datetime:
        """Converts a time of the server to this machine's clock, by the difference that the newest answer has shown."""
        return datetime.fromisoformat(server_time.replace("Z", "+00:00")) - self._behind

    def read(self, method: str, path: str, call: Call = Call(), *, has: str) -> Json:
        """The JSON object of an answer that has this field."""
        answer = self.json(method, path, call)
        if answer is None or has not in answer:
            raise WrongAnswer(answer)
        return dict(answer)

    def json(self, method: str, path: str, call: Call = Call()) -> Any:
        """The JSON object of the answer; `None` for an empty one."""

        def attempt() -> Any:
            response = self._fetch(method, path, call, "application/json")
            text = self._text(response)
            return object_in(text) if text else None

        return self._repeat(method, call, attempt)

    def start_stream(self, path: str, call: Call) -> OpenStream:
        """Opens a stream with POST; repeats the request if that is safe."""
        return self._repeat("POST", call, lambda: self._stream("POST", path, call))

    def open_stream(self, path: str, call: Call) -> OpenStream:
        """Opens a stream with GET, in one attempt."""
        return self._stream("GET", path, call)

    def _stream(self, method: str, path: str, call: Call) -> OpenStream:
        response = self._fetch(method, path, call, EVENTS)
        kind = response.headers.get("content-type", "of no type")
        if response.status_code == 200 and not kind.startswith(EVENTS):
            self.io.leave(response)  # The answer comes from something between us and the server, such as a proxy, and would be the same again.
            raise WrongAnswer(kind)
        # httpx has one timeout for all reads of a request, and looks it up for each part of the body.
        response.request.extensions["timeout"]["read"] = self.settings.stall
        return OpenStream(self.io, response)

    def _repeat(self, method: str, call: Call, attempt: Function[[], T]) -> T:
        failures = 0
        while True:
            try:
                return attempt()
            except AgentEngineError as cause:
                failures += 1
                pause = pause_before_repeat(cause, method, call.key is not None, failures)
                if pause is None or failures >= self.settings.attempts:
                    raise
            self.io.sleep(pause)

    def _fetch(self, method: str, path: str, call: Call, accept: str) -> httpx.Response:
        if not callable(self._token):
            response = self._send(method, path, call, accept, self._token)
        else:
            token = self.io.call(self._token, None)
            response = self._send(method, path, call, accept, token)
            if response.status_code == 401:
                self.io.leave(response)
                response = self._send(method, path, call, accept, self.io.call(self._token, token))
        self._learn_time(response.headers.get("date"))
        if response.status_code >= 400:
            raise ApiError(response.status_code, response.headers, self._text(response))
        if response.status_code >= 300:  # Redirects are refused: the body and the token are meant for this server only.
            self.io.leave(response)
            raise WrongAnswer(f"{response.status_code} {response.headers.get('location', '')}".strip())
        return response

    def _send(self, method: str, path: str, call: Call, accept: str, token: str | None) -> httpx.Response:
        own = {
            "accept": accept,
            "content-type": "application/octet-stream" if call.content else None if call.body is None else "application/json",
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
            content=call.content() if call.content else None if call.body is None else json.dumps(call.body),
            timeout=seconds,
        )
        try:
            return self.io.send(request)
        except httpx.HTTPError as cause:
            raise ConnectionFailed(f"the connection failed: {cause!r}") from cause

    def _text(self, response: httpx.Response) -> str:
        try:
            return self.io.text(response)
        except httpx.HTTPError as cause:
            raise ConnectionFailed(f"the connection failed: {cause!r}") from cause
        finally:
            self.io.leave(response)

    def _learn_time(self, date: str | None) -> None:
        """A small difference is ignored: the header has whole seconds, and the answer took some time to arrive."""
        try:
            behind = parsedate_to_datetime(date or "") - datetime.now(timezone.utc)
        except (TypeError, ValueError):
            return
        self._behind = behind if abs(behind) > timedelta(seconds=1.5) else timedelta()
