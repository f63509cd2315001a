"""Parses server-sent events from bytes. No input or output: the same for both clients."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

#: An event above this many characters is refused. The server's are far smaller.
MAX_EVENT_CHARS = 32 * 1024 * 1024

_NEWLINE = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class SseEvent:
    """`id` is the newest id in the stream so far."""

    id: str
    event: str
    data: str


class SseParser:
    """Lines end with CR, LF or both, wherever the bytes are divided. An incomplete event at the end is dropped."""

    def __init__(self) -> None:
        #: The pause before a new connection in seconds, when the server asks for it.
        self.retry: float | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest: list[str] = []
        self._id = ""
        self._event = ""
        self._data: list[str] = []
        self._chars = 0
        self._ended_with_cr = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Takes the next bytes and returns the events that they complete."""
        text = self._decoder.decode(chunk)
        if text == "":
            return []
        fresh = text[1:] if self._ended_with_cr and text[0] == "\n" else text
        self._ended_with_cr = text[-1] == "\r"
        *lines, rest = _NEWLINE.split(fresh)
        self._chars += len(fresh)
        if lines:
            lines[0] = "".join(self._rest) + lines[0]
            self._rest = []
        self._rest.append(rest)
        found = [event for line in lines if (event := self._take_line(line)) is not None]
        if self._chars > MAX_EVENT_CHARS:
            raise ValueError("an event is too large")
        return found

    def _take_line(self, line: str) -> SseEvent | None:
        if line == "":
            return self._complete()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\0" not in value:
            self._id = value
        elif field == "retry" and re.fullmatch(r"[0-9]+", value):
            self.retry = int(value) / 1000
        return None

    def _complete(self) -> SseEvent | None:
        event = SseEvent(self._id, self._event or "message", "\n".join(self._data)) if self._data else None
        self._event, self._data, self._chars = "", [], 0
        return event
