"""The client."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from .._async_io import AsyncClient, AsyncIo, AsyncItems
from .._documents import FlowOutcome, Start, TenantEvent
from .._events import Event, is_end_of_flow
from .._requests import AUTO, DRY, Call, Json, Key, Settings, Token, at, key_of
from .._typed import Schema, body_of
from ..errors import ApiError, ConnectionFailed
from .pages import AsyncPages
from .permissions import AsyncPermissions
from .plans import AsyncPlans
from .run import AsyncRun, OnPermission
from .tenant_events import tenant_events
from .tool_calls import OnToolCall
from .transport import Transport


class AsyncRuns:
    """Runs of all kinds: running ones, and the records of those that have ended."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def start(self, prompt: str, *, idempotency_key: Key = AUTO, **body: Any) -> str:
        """Starts a run that continues without a reader. Returns its id."""
        call = Call(body={"prompt": prompt, **body, "background": True}, key=key_of(idempotency_key))
        return str((await self._transport.read("POST", "/agent/run", call, has="run_id"))["run_id"])

    def resume(
        self, id: str, *, after: int = 0, on_permission: OnPermission | None = None, on_tool_call: OnToolCall | None = None
    ) -> AsyncRun:
        """Reads a run from its first event, or after the event `after`."""

        async def session_of(run_id: str) -> str:
            return str((await self.get(run_id)).get("session_id") or run_id)

        return AsyncRun(
            self._transport, id=id, after=after, on_permission=on_permission, on_tool_call=on_tool_call, session_of=session_of
        )

    async def get(self, id: str) -> Json:
        return await self._transport.read("GET", at("/runs/", id), has="status")

    def list(self, **query: Any) -> AsyncPages:
        """Running ones come first, then the others, newest first."""
        return AsyncPages(self._transport, "/runs", query)

    async def steer(self, id: str, prompt: str, *, idempotency_key: Key = AUTO) -> Json:
        """Sends a text to a running run. Its model reads the text once, at its next call."""
        call = Call(body={"prompt": prompt}, key=key_of(idempotency_key))
        return await self._transport.read("POST", at("/runs/", id) + "/steer", call, has="id")

    async def cancel(self, id: str) -> None:
        await self._transport.json("DELETE", at("/runs/", id))


class AsyncSession:
    """One conversation. Its messages are answered one after the other."""

    def __init__(self, transport: Transport, id: str) -> None:
        self.id = id
        self._transport = transport
        self._path = at("/sessions/", id)

    def send(
        self,
        prompt: str,
        *,
        on_permission: OnPermission | None = None,
        on_tool_call: OnToolCall | None = None,
        idempotency_key: Key = AUTO,
        traceparent: str | None = None,
        schema: Schema | None = None,
        **body: Any,
    ) -> AsyncRun:
        """Sends a message. Its run starts when it is read. With `schema` its output is a value that fits the schema."""

        async def session_of(run_id: str) -> str:
            return self.id

        start = Start(f"{self._path}/messages", body_of(prompt, schema, body), key_of(idempotency_key), schema)
        return AsyncRun(
            self._transport,
            start=start,
            on_permission=on_permission,
            on_tool_call=on_tool_call,
            session_of=session_of,
            traceparent=traceparent,
        )

    async def get(self) -> Json:
        return await self._transport.read("GET", self._path, has="session_id")

    def messages(self, *, head: str | None = None) -> AsyncPages:
        """The history that the next message continues, oldest first, or the branch that ends with the message `head`.
        """
        return AsyncPages(self._transport, f"{self._path}/messages", {"head": head})

    async def fork(self, at: str, *, id: str | None = None) -> AsyncSession:
        """Creates a separate session that continues from the message `at`, or from the last one of the run `at`."""
        body = {"at": at, **({} if id is None else {"session_id": id})}
        forked = await self._transport.read("POST", f"{self._path}/fork", Call(body=body), has="session_id")
        return AsyncSession(self._transport, forked["session_id"])

    async def rename(self, title: str) -> Json:
        return await self._transport.read("PATCH", self._path, Call(body={"title": title}), has="session_id")

    async def delete(self) -> None:
        """Ends the session, its runs and its pending permission requests."""
        await self._transport.json("DELETE", self._path)


class AsyncSessions:
    """Conversations. They live in the server's memory."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def open(self, id: str | None = None, *, messages: Sequence[Json] | None = None) -> AsyncSession:
        """Creates a session, or joins the one of this id that exists. `messages` is the history that a new one begins
        with.
        """
        body = {name: value for name, value in (("session_id", id), ("messages", messages)) if value is not None}
        try:
            created = await self._transport.read("POST", "/sessions", Call(body=body), has="session_id")
        except ApiError as cause:
            if id is None or cause.status != 409:
                raise
            return AsyncSession(self._transport, id)
        return AsyncSession(self._transport, created["session_id"])

    def list(self, **query: Any) -> AsyncPages:
        return AsyncPages(self._transport, "/sessions", query)


class AsyncFlows:
    """Named flows: JSON in, JSON out that fits a schema."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def run(
        self,
        name: str,
        input: Json,
        *,
        instance: str,
        on_event: Callable[[Event], object] | None = None,
        idempotency_key: Key = AUTO,
        **body: Any,
    ) -> FlowOutcome:
        """Runs a published flow. It is followed as a stream, so that a broken connection loses nothing. Raises
        `ApiError` when the server refuses it, and `RunFailed` when the flow fails.
        """
        request = {"input": input, "provider_instance": instance, **body}
        start = Start(f"{at('/flows/', name)}/run", request, key_of(idempotency_key))
        run = AsyncRun(self._transport, start=start, is_end=is_end_of_flow)
        try:
            async for event in run:
                if on_event is not None:
                    on_event(event)
                if event.event == "result":
                    answer = event.data
                    is_ok = answer["verdict"] == "ok"
                    return FlowOutcome(is_ok, answer.get("output") if is_ok else None, answer.get("problems") or [], answer)
        finally:
            await run.leave()
        raise ConnectionFailed("the end of the flow did not come")

    async def estimate(self, name: str, input: Json, *, instance: str, **body: Any) -> Json:
        """Estimates a run: its first model call, and its cost. Nothing is started."""
        request = {"input": input, "provider_instance": instance, **body}
        return await self._transport.read("POST", f"{at('/flows/', name)}/run", Call(body=request, query=DRY), has="budget")

    async def get(self, name: str) -> Json:
        return await self._transport.read("GET", at("/flows/", name), has="name")

    def list(self, **query: Any) -> AsyncPages:
        return AsyncPages(self._transport, "/flows", query)


class AsyncFiles:
    """Files that prompts and flows name by their ids."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def upload(
        self, file: str | os.PathLike[str] | bytes, *, name: str | None = None, expires_in_secs: float | None = None, timeout: float = 600.0
    ) -> Json:
        """Keeps a file of this machine, which is read while it is sent, or bytes. `attachments=[{"file_id": …}]` of a
        prompt names it. It is sent only once, even if no answer comes.
        """
        query = {"name": name if isinstance(file, bytes) else name or os.path.basename(file), "expires_in_secs": expires_in_secs}
        content: Callable[[], Any]
        if isinstance(file, bytes):
            content = lambda: file  # noqa: E731
        else:
            os.stat(file)  # A file that is not there is no failure of the connection.
            content = lambda: self._transport.io.read_file(file)  # noqa: E731
        return await self._transport.read("POST", "/files", Call(query=query, content=content, timeout=timeout), has="file_id")

    async def attach(self, *files: str | os.PathLike[str]) -> Sequence[Json]:
        """Keeps files, one after the other. Returns the `attachments` of a prompt."""
        return [{"file_id": (await self.upload(file))["file_id"]} for file in files]

    async def get(self, id: str) -> Json:
        return await self._transport.read("GET", at("/files/", id), has="file_id")

    def list(self, **query: Any) -> AsyncPages:
        """The newest first."""
        return AsyncPages(self._transport, "/files", query)

    async def delete(self, id: str) -> None:
        await self._transport.json("DELETE", at("/files/", id))


class AsyncDispatches:
    """The records of flows that have run."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self, id: str) -> Json:
        return await self._transport.read("GET", at("/dispatches/", id), has="trace_id")

    def list(self, **query: Any) -> AsyncPages:
        return AsyncPages(self._transport, "/dispatches", query)


class AsyncAgentEngine:
    """A client of the agent engine's API. `token` is a string or a function, which may be a coroutine where that can
    be awaited: it is called with `None` before each request, and once more, with the refused token, after a 401.
    `settings` holds times and attempts. One
    that blocks may be used by several threads."""

    def __init__(
        self,
        url: str,
        *,
        token: Token = None,
        headers: Callable[[], Mapping[str, str]] | None = None,
        settings: Settings = Settings(),
        client: AsyncClient | None = None,
    ) -> None:
        self._io = AsyncIo(client)
        self._transport = Transport(self._io, url, token, headers, settings)
        self.runs = AsyncRuns(self._transport)
        self.sessions = AsyncSessions(self._transport)
        self.permissions = AsyncPermissions(self._transport)
        self.flows = AsyncFlows(self._transport)
        self.plans = AsyncPlans(self._transport)
        self.files = AsyncFiles(self._transport)
        self.dispatches = AsyncDispatches(self._transport)

    async def __aenter__(self) -> AsyncAgentEngine:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections. An httpx client of the caller stays open."""
        await self._io.close()

    def run(
        self,
        prompt: str,
        *,
        on_permission: OnPermission | None = None,
        on_tool_call: OnToolCall | None = None,
        idempotency_key: Key = AUTO,
        traceparent: str | None = None,
        schema: Schema | None = None,
        **body: Any,
    ) -> AsyncRun:
        """A run, which starts when it is read: as events, as text, or with `result()`. With `schema`, a JSON Schema
        or a pydantic model, its output is a value that fits the schema. `body` has the further fields of the request.
        """
        start = Start("/agent/run", body_of(prompt, schema, body), key_of(idempotency_key), schema)
        return AsyncRun(
            self._transport, start=start, on_permission=on_permission, on_tool_call=on_tool_call, traceparent=traceparent
        )

    async def estimate(self, prompt: str, *, schema: Schema | None = None, **body: Any) -> Json:
        """Estimates a run: its first model call, and its cost. Nothing is started. A request that a start would
        refuse raises `ApiError`.
        """
        call = Call(body=body_of(prompt, schema, body), query=DRY)
        return await self._transport.read("POST", "/agent/run", call, has="budget")

    def events(self, *, types: Sequence[str] = (), after: str = "", reset: bool = False) -> AsyncItems[TenantEvent]:
        """
        The events of the tenant's runs, permission requests, plans, flows and settings, until the loop is left. With `reset`
        the first one is a `reset`, which comes once the stream is open.
        """
        return tenant_events(self._transport, types=types, after=after, reset=reset)

    async def me(self) -> Json:
        """The caller's tenant, subject and scopes, and the server's features and limits."""
        return await self._transport.read("GET", "/me", has="tenant")

    def usage(self, **query: Any) -> AsyncPages:
        """The usage by hour or day."""
        return AsyncPages(self._transport, "/usage", query)

    def local_time(self, server_time: str) -> datetime:
        """Converts a time of the server, such as `expires_at`, to this machine's clock."""
        return self._transport.local_time(server_time)

    async def request(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None, idempotency_key: str | None = None
    ) -> Any:
        """Calls any other endpoint that answers with JSON."""
        return await self._transport.json(method, path, Call(query=query or {}, body=body, key=idempotency_key))
