"""Permission requests: tool calls that wait for a person."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .._async_io import AsyncFunction, AsyncItems
from .._events import Event
from .._requests import Call, Json, at, backoff
from ..errors import ApiError, ConnectionFailed
from .pages import AsyncPages
from .tenant_events import tenant_events
from .transport import Transport

_REPLIES = 4
_PAUSE = 0.5
_TOLD = 5.0


class AsyncPermissionAsk:
    """Answer it with `allow` or `deny`; without an answer it is denied at `expires_at`."""

    def __init__(self, transport: Transport, request: Json, run_id: str, session_of: AsyncFunction[[], str], subagent_id: str | None = None) -> None:
        #: As the server has sent it.
        self.request = request
        self.run_id = run_id
        #: The sub-agent whose call it is.
        self.subagent_id = subagent_id
        #: How it was decided, once that is known: `how` is also `ended` (its run ended first) or `unknown`.
        self.resolution: Json | None = None
        self._transport = transport
        self._session_of = session_of
        self._decided = transport.io.flag()

    @property
    def id(self) -> str:
        return str(self.request["id"])

    @property
    def tool_name(self) -> str:
        return str(self.request["tool_name"])

    @property
    def input(self) -> Json:
        return dict(self.request["input"])

    @property
    def message(self) -> str:
        return str(self.request["message"])

    @property
    def preview(self) -> Json | None:
        """The effect that the call would have: a change of a file, a command or a request."""
        return self.request.get("preview")

    @property
    def expires_at(self) -> datetime:
        """Converted to this machine's clock, by the difference that the server's answers have shown."""
        return self._transport.local_time(self.request["expires_at"])

    async def allow(self, *, remember: bool = False, input: Json | None = None, reason: str | None = None) -> bool:
        """Lets the tool run. `remember` allows it for the rest of the session, `input` lets it run with another
        input. `False` when the request was already decided, elsewhere or by its deadline.
        """
        reply = {"allow": True, "remember": "session" if remember else None, "input": input, "reason": reason}
        return await self._reply(reply)

    async def deny(self, reason: str | None = None) -> bool:
        """Refuses the call. The model reads the reason. Returns the same as `allow`."""
        return await self._reply({"allow": False, "reason": reason})

    def settle(self, resolution: Json) -> None:
        if self.resolution is None:
            self.resolution = resolution
            self._decided.set()

    async def _reply(self, reply: Mapping[str, Any]) -> bool:
        """A reply whose answer was lost is sent again; only one reply counts."""
        body = {name: value for name, value in reply.items() if value is not None}
        session_id = await self._session_of()
        path = at(f"{at('/sessions/', session_id)}/permissions/", self.id)
        attempt = 1
        while self.resolution is None:
            try:
                await self._transport.json("POST", path, Call(body=body))
                return True
            except ApiError as cause:
                if cause.status not in (404, 409):  # 409: somebody else has replied. 404: it has expired, or its run has ended.
                    raise
                break
            except ConnectionFailed:
                if attempt >= _REPLIES:
                    raise
            await self._transport.io.sleep(backoff(attempt, _PAUSE, _PAUSE))
            attempt += 1
        return attempt > 1 and await self._is_as(reply["allow"])

    async def _is_as(self, allow: bool) -> bool:
        """Whether the decision, which the stream shows soon, is that of our own reply whose answer was lost."""
        if self.resolution is None:
            await self._transport.io.wait(self._decided, _TOLD)
        found: Json = self.resolution or {}
        return found.get("allow") is allow and found.get("how") == "reply"


class RunAsks:
    """The permission requests of one run that are pending, also those of its sub-agents."""

    def __init__(self, transport: Transport, session_of: AsyncFunction[[str], str]) -> None:
        self._transport = transport
        self._session_of = session_of
        self._asks: dict[str, AsyncPermissionAsk] = {}
        self._subagents: dict[str, str] = {}
        # The ids of all requests so far: a request comes again when another server continues the run.
        self._begun: set[str] = set()

    def take(self, event: Event, run_id: str) -> AsyncPermissionAsk | None:
        """Takes an event, and returns the request that it begins."""
        data = event.data
        if event.event == "subagent_event" and data.get("event_type") == "permission_request":
            self._subagents[data["id"]] = data["subagent_id"]  # It comes twice: first wrapped, then plain.
        if event.event == "permission_resolved" and (decided := self._asks.pop(data["id"], None)) is not None:
            decided.settle(data)
        if event.event != "permission_request" or data["id"] in self._begun:
            return None
        self._begun.add(data["id"])
        ask = AsyncPermissionAsk(self._transport, data, run_id, lambda: self._session_of(run_id), self._subagents.get(data["id"]))
        self._asks[ask.id] = ask
        return ask

    def close(self) -> None:
        """Called when the run has ended."""
        for ask in self._asks.values():
            ask.settle({"how": "ended"})
        self._asks.clear()


class AsyncPermissions:
    """The permission requests of all the tenant's runs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> AsyncPages:
        """Those that are pending, oldest first."""
        return AsyncPages(self._transport, "/permissions")

    def decided(self, *, since: str | None = None) -> AsyncPages:
        """Those that were decided, newest first: by whom, when and how."""
        return AsyncPages(self._transport, "/permissions", {"state": "decided", "since": since})

    def remembered(self) -> AsyncPages:
        """The tools that replies have allowed for the rest of a session."""
        return AsyncPages(self._transport, "/permissions", {"state": "remembered"})

    async def reply(self, session_id: str, request_id: str, body: Json) -> None:
        """Answers a request of a session, or of a one-shot run, whose id is then the `session_id`. Raises `ApiError`
        409 or 404 when it is too late.
        """
        path = at(f"{at('/sessions/', session_id)}/permissions/", request_id)
        await self._transport.json("POST", path, Call(body=body))

    async def forget(self, session_id: str, tool_name: str | None = None) -> Json:
        """Takes back what a reply has allowed for a session: one tool, or all."""
        query = {"session_id": session_id, "tool_name": tool_name}
        return await self._transport.read("DELETE", "/permissions/remembered", Call(query=query), has="count")

    async def watch(self) -> AsyncItems[AsyncPermissionAsk]:
        """Yields each pending and each new request of all the tenant's runs once. `resolution` of an earlier one is
        known once the next is requested.
        """
        pending: dict[str, AsyncPermissionAsk] = {}
        types = ("permission.requested", "permission.resolved", "run.ended")
        async for change in tenant_events(self._transport, types=types, reset=True):
            is_reset = change.event == "reset"
            is_new = change.event == "permission.requested" and change.data["request_id"] not in pending
            listed = await self.list().all() if is_reset or is_new else []
            ids = {request["id"] for request in listed}
            for ask in tuple(pending.values()):
                resolution = {"how": "unknown"} if is_reset and ask.id not in ids else _resolution_of(ask, change.event, change.data)
                if resolution is not None:
                    ask.settle(resolution)
                    del pending[ask.id]
            for request in listed:
                if request["id"] not in pending:
                    pending[request["id"]] = self._ask_of(request)
                    yield pending[request["id"]]

    def _ask_of(self, request: Json) -> AsyncPermissionAsk:
        async def session() -> str:
            return str(request["session_id"])

        return AsyncPermissionAsk(self._transport, request, request["run_id"], session)


def _resolution_of(ask: AsyncPermissionAsk, event: str, data: Json) -> Json | None:
    """How the event has decided the request, if it has."""
    if event == "permission.resolved" and data.get("request_id") == ask.id:
        return data
    return {"how": "ended"} if event == "run.ended" and data.get("run_id") == ask.run_id else None
