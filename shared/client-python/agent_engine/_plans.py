"""Plans: steps with dependencies that run in the background."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from ._follow import Event, event_of, follow
from ._pages import AsyncPages
from ._transport import AUTO, Call, Json, Key, OpenStream, Transport, at, key_of


@dataclass(frozen=True)
class PlanStep:
    id: str
    status: str
    title: str | None = None
    error: str | None = None

    @property
    def is_over(self) -> bool:
        return self.status not in ("pending", "running")


@dataclass(frozen=True)
class PlanProgress:
    """How far a plan is. `done` counts the steps that need nothing more: done, failed and skipped ones."""

    done: int
    total: int
    status: str
    steps: tuple[PlanStep, ...]
    #: The plan as it was read last: when the progress began, and at the end, with outputs and costs.
    plan: Json


class AsyncPlan:
    """A submitted plan."""

    def __init__(self, transport: Transport, id: str) -> None:
        self.id = id
        self._transport = transport
        self._path = at("/plans/", id)

    async def get(self) -> Json:
        return dict(await self._transport.json("GET", self._path))

    async def progress(self) -> AsyncGenerator[PlanProgress, None]:
        """How far the plan is, now and after each change until it ends."""
        plan = await self.get()
        steps = _steps_of(plan)
        status: str = plan["status"]
        yield _progress_of(plan, steps, status)
        if status not in ("queued", "running"):
            return
        async for event in self.events():
            status = "running" if event.event == "plan_started" else status
            changed = _change_of(event, steps)
            if changed is not None:
                steps[changed.id] = changed
                yield _progress_of(plan, steps, status)
        ended = await self.get()
        yield _progress_of(ended, _steps_of(ended), ended["status"])

    def events(self) -> AsyncGenerator[Event, None]:
        """The plan's events from the first one on."""

        async def open_stream(last: str) -> OpenStream:
            return await self._transport.open_stream(f"{self._path}/events", Call(last_event_id=last or None))

        return follow(self._transport, open_stream, event_of)

    async def result(self) -> Json:
        """The plan once it has ended, whether its steps were done or not: `status` says so."""
        plan = await self.get()
        async for progress in self.progress():
            plan = progress.plan
        return plan

    async def cancel(self) -> None:
        await self._transport.json("POST", f"{self._path}/cancel")

    async def retry(self) -> AsyncPlan:
        """Submits what is left of a plan that has ended."""
        plan = await self._transport.json("POST", f"{self._path}/retry")
        return AsyncPlan(self._transport, plan["id"])


class AsyncPlans:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def submit(self, plan: Json, *, idempotency_key: Key = AUTO) -> AsyncPlan:
        call = Call(body=plan, key=key_of(idempotency_key))
        return self.of((await self._transport.json("POST", "/plans/submit", call))["id"])

    def of(self, id: str) -> AsyncPlan:
        """A plan that was submitted before."""
        return AsyncPlan(self._transport, id)

    async def check(self, plan: Json) -> Json:
        """All that is wrong with a plan, and its waves. Nothing is submitted."""
        return dict(await self._transport.json("POST", "/plans/check", Call(body=plan)))

    def list(self, **query: object) -> AsyncPages:
        return AsyncPages(self._transport, "/plans", query)


def _steps_of(plan: Json) -> dict[str, PlanStep]:
    statuses, errors = plan.get("step_statuses", {}), plan.get("step_errors") or {}
    return {
        step["id"]: PlanStep(step["id"], statuses.get(step["id"], "pending"), step.get("title"), errors.get(step["id"]))
        for step in plan["steps"]
    }


def _change_of(event: Event, steps: dict[str, PlanStep]) -> PlanStep | None:
    """The step that the event changes. The events are replayed from the first one, so some tell what the plan has shown already."""
    step = steps.get(event.data.get("step_id", "")) if event.event in ("step_started", "step_ended") else None
    if step is None or step.is_over:
        return None
    if event.event == "step_started":
        return None if step.status == "running" else replace(step, status="running")
    return replace(step, status=event.data["status"], error=event.data.get("error", step.error))


def _progress_of(plan: Json, steps: dict[str, PlanStep], status: str) -> PlanProgress:
    listed = tuple(steps.values())
    return PlanProgress(sum(step.is_over for step in listed), len(listed), status, listed, plan)
