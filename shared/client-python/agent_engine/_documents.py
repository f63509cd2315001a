"""The types that the methods return. No input or output: the same for both clients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ._events import Event
from ._requests import Json
from ._typed import Schema


@dataclass(frozen=True)
class Page:
    items: list[Json]
    next_cursor: str | None


@dataclass(frozen=True)
class RunResult:
    """The end of a successful run. `output` is its text, with a blank line between blocks, or the value of a run with
    a schema.
    """

    run_id: str
    output: Any
    #: The data of `done`. `None` when the run ended with its plan in the queue.
    usage: Json | None
    stop_reason: str
    plan_id: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class Start:
    """The request that starts a run."""

    path: str
    body: Json
    key: str | None
    schema: Schema | None = None


@dataclass(frozen=True)
class FlowOutcome:
    """`ok`: the output fits the flow's `output_schema`. If not, `problems` says why."""

    ok: bool
    output: Any
    problems: list[Json]
    #: All of the answer: `trace_id`, `flow_version`, `served_instance` and so on.
    answer: Json


@dataclass(frozen=True)
class TenantEvent:
    """`event` is `reset` when some events are missing: read again what you show."""

    id: str
    event: str
    data: Json


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
    """A plan's progress. `done` counts the steps that have ended: done, failed and skipped ones."""

    done: int
    total: int
    status: str
    steps: tuple[PlanStep, ...]
    #: The plan as it was last read: at the beginning, and at the end, then with outputs and costs.
    plan: Json


def steps_of(plan: Json) -> dict[str, PlanStep]:
    statuses, errors = plan.get("step_statuses", {}), plan.get("step_errors") or {}
    return {
        step["id"]: PlanStep(step["id"], statuses.get(step["id"], "pending"), step.get("title"), errors.get(step["id"]))
        for step in plan["steps"]
    }


def change_of(event: Event, steps: dict[str, PlanStep]) -> PlanStep | None:
    """The step that the event changes. The events are replayed from the first one, so some show what the plan already
    contains.
    """
    step = steps.get(event.data.get("step_id", "")) if event.event in ("step_started", "step_ended") else None
    if step is None or step.is_over:
        return None
    if event.event == "step_started":
        return None if step.status == "running" else replace(step, status="running")
    return replace(step, status=event.data["status"], error=event.data.get("error", step.error))


def progress_of(plan: Json, steps: dict[str, PlanStep], status: str) -> PlanProgress:
    listed = tuple(steps.values())
    return PlanProgress(sum(step.is_over for step in listed), len(listed), status, listed, plan)
