# Generated from ../_async/tool_calls.py by scripts/blocking-client.py: edit that file instead.
"""Calls of the caller's own tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .._requests import Call, Json, at, backoff
from ..errors import ApiError, ConnectionFailed
from .transport import Transport

_TRIES = 4
_PAUSE = 0.5

#: Gets the data of a `tool_use` event. What it returns is the output, as JSON where it is no text, and what it raises
#: the error of a call that has
#: failed. `None` leaves the call to others.
OnToolCall = Callable[[Json], Any]


def make_call(transport: Transport, run_id: str, call: Json, on_tool_call: OnToolCall) -> None:
    """Executes a call, and sends its answer. A late answer is ignored."""
    try:
        output = transport.io.call(on_tool_call, call)
    except Exception as failure:  # noqa: BLE001 -- the model reads it
        return answer_call(transport, run_id, call["id"], {"output": f"{type(failure).__name__}: {failure}", "is_error": True})
    if output is not None:
        answer_call(transport, run_id, call["id"], {"output": output if isinstance(output, str) else json.dumps(output)})


def answer_call(transport: Transport, run_id: str, tool_use_id: str, body: Json) -> None:
    """If the server's response was lost the answer is sent again; only one answer counts."""
    path = at(f"{at('/runs/', run_id)}/tool-calls/", tool_use_id)
    for attempt in range(1, _TRIES + 1):
        try:
            transport.json("POST", path, Call(body=body))
            return
        except ApiError as cause:
            if cause.status not in (404, 409):  # 409: the call was already answered. 404: it has expired, or its run has ended.
                raise
            return
        except ConnectionFailed:
            if attempt == _TRIES:
                raise
        transport.io.sleep(backoff(attempt, _PAUSE, _PAUSE))
