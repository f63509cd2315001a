"""The blocking twins: the same methods, driven to their end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import httpx

from ._engine import AsyncAgentEngine, AsyncDispatches, AsyncFlows, AsyncRuns, AsyncSession, AsyncSessions, FlowOutcome
from ._follow import Event
from ._io import BlockingIo, drive, drive_all
from ._pages import AsyncPages, Page
from ._permissions import AsyncPermissionAsk, AsyncPermissions
from ._plans import AsyncPlan, AsyncPlans, PlanProgress
from ._run import AsyncRun, RunResult
from ._tenant_events import TenantEvent
from ._transport import AUTO, Json, Key, Settings, Token


class Pages:
    """Iterate over all items, or read one page."""

    def __init__(self, twin: AsyncPages) -> None:
        self._twin = twin

    def __iter__(self) -> Iterator[Json]:
        return drive_all(self._twin.__aiter__())

    def page(self, cursor: str | None = None) -> Page:
        """The page behind a cursor, or the first one."""
        return drive(self._twin.page(cursor))

    def all(self, most: float = float("inf")) -> list[Json]:
        """All items, up to this many."""
        return drive(self._twin.all(most))


class PermissionAsk:
    """A tool call that waits for a person. Answer it with `allow` or `deny`; without an answer it is denied at `expires_at`."""

    def __init__(self, twin: AsyncPermissionAsk) -> None:
        self._twin = twin
        self.request = twin.request
        self.run_id = twin.run_id
        self.subagent_id = twin.subagent_id
        self.id = twin.id
        self.tool_name = twin.tool_name
        self.input = twin.input
        self.message = twin.message
        self.preview = twin.preview

    @property
    def expires_at(self) -> datetime:
        """By this machine's clock, as far as the server's answers tell how it goes."""
        return self._twin.expires_at

    @property
    def resolution(self) -> Json | None:
        """How it was decided, as soon as that is known."""
        return self._twin.resolution

    def allow(self, *, remember: bool = False, input: Json | None = None, reason: str | None = None) -> bool:
        """Lets the tool run. `False` when the request was decided before, elsewhere or by its deadline."""
        return drive(self._twin.allow(remember=remember, input=input, reason=reason))

    def deny(self, reason: str | None = None) -> bool:
        """Refuses the call. The model reads the reason. Returns as `allow` does."""
        return drive(self._twin.deny(reason))


OnPermission = Callable[[PermissionAsk], object]


def _answer(on_permission: OnPermission | None) -> Callable[[AsyncPermissionAsk], object] | None:
    return None if on_permission is None else lambda ask: on_permission(PermissionAsk(ask))


class Run:
    """It starts when it is read for the first time. A connection that breaks is resumed; each event comes once and in order. It has one reader:
    a second loop goes on where the first one stopped."""

    def __init__(self, twin: AsyncRun) -> None:
        self._twin = twin

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    @property
    def id(self) -> str | None:
        return self._twin.id

    @property
    def last_event_id(self) -> int:
        return self._twin.last_event_id

    def __iter__(self) -> Iterator[Event]:
        """The events from here on. The `error` of a run that fails comes, too, and then `RunFailed` is raised."""
        return drive_all(self._twin.__aiter__())

    def text(self) -> Iterator[str]:
        """The answer's text as it comes, with a blank line between its blocks."""
        return drive_all(self._twin.text())

    def result(self) -> RunResult:
        """Reads the run to its end. Raises `RunFailed`, `RunLost`, `ApiError` and `ConnectionFailed`."""
        return drive(self._twin.result())

    def started(self) -> str:
        """Starts the run. Returns its id once the server has taken it."""
        return drive(self._twin.started())

    def cancel(self) -> None:
        """Ends the run at the server, with its model call, tools and sub-agents."""
        drive(self._twin.cancel())

    def leave(self) -> None:
        """Stops reading. The server ends a run that nobody reads for a while."""
        drive(self._twin.leave())


class Runs:
    def __init__(self, twin: AsyncRuns) -> None:
        self._twin = twin

    def start(self, prompt: str, *, idempotency_key: Key = AUTO, **body: Any) -> str:
        """Starts a run that goes on without a reader. Returns its id."""
        return drive(self._twin.start(prompt, idempotency_key=idempotency_key, **body))

    def resume(self, id: str, *, after: int = 0, on_permission: OnPermission | None = None) -> Run:
        """Reads a run from its first event, or behind the event `after`."""
        return Run(self._twin.resume(id, after=after, on_permission=_answer(on_permission)))

    def get(self, id: str) -> Json:
        return drive(self._twin.get(id))

    def list(self, **query: Any) -> Pages:
        return Pages(self._twin.list(**query))

    def cancel(self, id: str) -> None:
        drive(self._twin.cancel(id))


class Session:
    """One conversation. Its messages are answered one after the other."""

    def __init__(self, twin: AsyncSession) -> None:
        self._twin = twin
        self.id = twin.id

    def send(
        self,
        prompt: str,
        *,
        on_permission: OnPermission | None = None,
        idempotency_key: Key = AUTO,
        traceparent: str | None = None,
        **body: Any,
    ) -> Run:
        """Sends a message. Its run starts when it is read."""
        answer = _answer(on_permission)
        return Run(self._twin.send(prompt, on_permission=answer, idempotency_key=idempotency_key, traceparent=traceparent, **body))

    def get(self) -> Json:
        return drive(self._twin.get())

    def messages(self, *, head: str | None = None) -> Pages:
        """The history that the next message continues, oldest first, or the branch that ends with the message `head`."""
        return Pages(self._twin.messages(head=head))

    def rename(self, title: str) -> Json:
        return drive(self._twin.rename(title))

    def delete(self) -> None:
        """Ends the session, its runs and its pending permission requests."""
        drive(self._twin.delete())


class Sessions:
    def __init__(self, twin: AsyncSessions) -> None:
        self._twin = twin

    def open(self, id: str | None = None, *, messages: Sequence[Json] | None = None) -> Session:
        """Creates a session, or joins the one of this id that exists. `messages` is the history that a new one begins with."""
        return Session(drive(self._twin.open(id, messages=messages)))

    def list(self, **query: Any) -> Pages:
        return Pages(self._twin.list(**query))


class Permissions:
    """The permission requests of all the tenant's runs."""

    def __init__(self, twin: AsyncPermissions) -> None:
        self._twin = twin

    def list(self) -> Pages:
        """Those that are pending, oldest first."""
        return Pages(self._twin.list())

    def decided(self, *, since: str | None = None) -> Pages:
        """Those that were decided, newest first: by whom, when and how."""
        return Pages(self._twin.decided(since=since))

    def remembered(self) -> Pages:
        """The tools that replies have allowed for the rest of a session."""
        return Pages(self._twin.remembered())

    def reply(self, session_id: str, request_id: str, body: Json) -> None:
        """Answers a request of a session; of a one-shot run its id stands for the session."""
        drive(self._twin.reply(session_id, request_id, body))

    def forget(self, session_id: str, tool_name: str | None = None) -> Json:
        """Takes back what a reply has allowed for a session: one tool, or all."""
        return drive(self._twin.forget(session_id, tool_name))

    def watch(self) -> Iterator[PermissionAsk]:
        """Each request that is pending or comes, once, of every run of the tenant."""
        return map(PermissionAsk, drive_all(self._twin.watch()))


class Flows:
    """Named flows: JSON in, JSON out that fits a schema."""

    def __init__(self, twin: AsyncFlows) -> None:
        self._twin = twin

    def run(
        self,
        name: str,
        input: Json,
        *,
        instance: str,
        on_event: Callable[[Event], object] | None = None,
        idempotency_key: Key = AUTO,
        **body: Any,
    ) -> FlowOutcome:
        """Runs a published flow. Raises `ApiError` for what is refused and `RunFailed` for a flow that fails."""
        return drive(self._twin.run(name, input, instance=instance, on_event=on_event, idempotency_key=idempotency_key, **body))

    def get(self, name: str) -> Json:
        return drive(self._twin.get(name))

    def list(self, **query: Any) -> Pages:
        return Pages(self._twin.list(**query))


class Plan:
    """A submitted plan."""

    def __init__(self, twin: AsyncPlan) -> None:
        self._twin = twin
        self.id = twin.id

    def get(self) -> Json:
        return drive(self._twin.get())

    def progress(self) -> Iterator[PlanProgress]:
        """How far the plan is, now and after each change until it ends."""
        return drive_all(self._twin.progress())

    def events(self) -> Iterator[Event]:
        """The plan's events from the first one on."""
        return drive_all(self._twin.events())

    def result(self) -> Json:
        """The plan once it has ended, whether its steps were done or not: `status` says so."""
        return drive(self._twin.result())

    def cancel(self) -> None:
        drive(self._twin.cancel())

    def retry(self) -> Plan:
        """Submits what is left of a plan that has ended."""
        return Plan(drive(self._twin.retry()))


class Plans:
    """Plans: steps with dependencies that run in the background."""

    def __init__(self, twin: AsyncPlans) -> None:
        self._twin = twin

    def submit(self, plan: Json, *, idempotency_key: Key = AUTO) -> Plan:
        return Plan(drive(self._twin.submit(plan, idempotency_key=idempotency_key)))

    def of(self, id: str) -> Plan:
        """A plan that was submitted before."""
        return Plan(self._twin.of(id))

    def check(self, plan: Json) -> Json:
        """All that is wrong with a plan, and its waves. Nothing is submitted."""
        return drive(self._twin.check(plan))

    def list(self, **query: Any) -> Pages:
        return Pages(self._twin.list(**query))


class Dispatches:
    """The records of flows that have run."""

    def __init__(self, twin: AsyncDispatches) -> None:
        self._twin = twin

    def get(self, id: str) -> Json:
        return drive(self._twin.get(id))

    def list(self, **query: Any) -> Pages:
        return Pages(self._twin.list(**query))


class AgentEngine:
    """A client of the agent engine's API. `token` is a string or a function: it is asked before each request with `None`, and once more, with
    the token that was refused, after a 401. `settings` holds times and attempts. It may be used by several threads."""

    def __init__(
        self,
        url: str,
        *,
        token: Token = None,
        headers: Callable[[], Mapping[str, str]] | None = None,
        settings: Settings = Settings(),
        client: httpx.Client | None = None,
    ) -> None:
        self._twin = AsyncAgentEngine(url, token=token, headers=headers, settings=settings, io=BlockingIo(client))
        self.runs = Runs(self._twin.runs)
        self.sessions = Sessions(self._twin.sessions)
        self.permissions = Permissions(self._twin.permissions)
        self.flows = Flows(self._twin.flows)
        self.plans = Plans(self._twin.plans)
        self.dispatches = Dispatches(self._twin.dispatches)

    def __enter__(self) -> AgentEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. A client that was given stays open."""
        drive(self._twin.close())

    def run(
        self,
        prompt: str,
        *,
        on_permission: OnPermission | None = None,
        idempotency_key: Key = AUTO,
        traceparent: str | None = None,
        **body: Any,
    ) -> Run:
        """A run, which starts when it is read: as events, as text, or with `result()`. `body` has the further fields of the request."""
        answer = _answer(on_permission)
        return Run(self._twin.run(prompt, on_permission=answer, idempotency_key=idempotency_key, traceparent=traceparent, **body))

    def events(self, *, types: Sequence[str] = (), after: str = "") -> Iterator[TenantEvent]:
        """The events of the tenant's runs, permission requests, plans, flows and settings, until the loop is left."""
        return drive_all(self._twin.events(types=types, after=after))

    def me(self) -> Json:
        """The caller's tenant, subject and scopes, and the server's features and limits."""
        return drive(self._twin.me())

    def usage(self, **query: Any) -> Pages:
        """The usage by hour or day."""
        return Pages(self._twin.usage(**query))

    def local_time(self, server_time: str) -> datetime:
        """A time of the server, such as `expires_at`, by this machine's clock."""
        return self._twin.local_time(server_time)

    def request(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None, idempotency_key: str | None = None
    ) -> Any:
        """Any other endpoint that answers JSON."""
        return drive(self._twin.request(method, path, query=query, body=body, idempotency_key=idempotency_key))
