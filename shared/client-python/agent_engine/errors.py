"""The exceptions of this package."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


class AgentEngineError(Exception):
    """The class of every error of this package."""


class ApiError(AgentEngineError):
    """The server refused a request. `status`, `type`, `code` and `param` are those of its answer."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str) -> None:
        error = _error_of(body)
        super().__init__(error.get("message") or f"{status} {body[:200]}".strip())
        self.status = status
        self.type: str = error.get("type", "unknown")
        self.code: str | None = error.get("code")
        self.param: str | None = error.get("param")
        self.problems: list[dict[str, str]] = error.get("problems", [])
        #: Names the request in the server's log.
        self.request_id = headers.get("x-request-id")
        #: After how many seconds the server accepts the request again.
        self.retry_after = _seconds_of(headers.get("retry-after"))


def _error_of(body: str) -> dict[str, Any]:
    try:
        error = object_in(body).get("error")
    except WrongAnswer:
        return {}  # A proxy has answered, not the server.
    return error if isinstance(error, dict) else {}


def object_in(text: str) -> dict[str, Any]:
    """Parses a text as a JSON object, which every answer of the server is."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise WrongAnswer(text) from cause
    if not isinstance(found, dict):
        raise WrongAnswer(text)
    return found


def _seconds_of(text: str | None) -> float | None:
    try:
        seconds = float(text or "nan")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None


class ConnectionFailed(AgentEngineError):
    """There is no answer: the connection broke or fell silent, and further attempts were not safe or failed, too."""


class WrongAnswer(ConnectionFailed):
    """The answer does not come from an agent-engine, but from a proxy, a sign-in page or another server. A repetition
    would not help.
    """

    def __init__(self, came: Any) -> None:
        super().__init__(f"the answer is {came!r:.200}: check the url")


class RunFailed(AgentEngineError):
    """The run itself has failed."""

    def __init__(self, data: Mapping[str, Any], run_id: str | None) -> None:
        super().__init__(data.get("error", "the run has failed"))
        self.code: str = data.get("code", "internal")
        #: The next thing to do.
        self.suggestion: str = data.get("suggestion", "")
        #: The same request may succeed later.
        self.retryable: bool = data.get("retryable", False)
        self.run_id = run_id


class RunLost(AgentEngineError):
    """The server no longer knows the run: nobody has read it for too long, or its record has expired."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"the server does not know {run_id} any more")
        self.run_id = run_id
