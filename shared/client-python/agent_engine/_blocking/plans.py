# Generated from ../_async/plans.py by scripts/blocking-client.py: edit that file instead.
"""Plans: steps with dependencies that run in the background."""

from __future__ import annotations

from .._blocking_io import Items
from .._documents import PlanProgress, change_of, progress_of, steps_of
from .._events import Event, event_of
from .._requests import AUTO, DRY, Call, Json, Key, at, key_of
from .follow import follow
from .pages import Pages
from .transport import OpenStream, Transport


class Plan:
    """A submitted plan."""

    def __init__(self, transport: Transport, id: str) -> None:
        self.id = id
        self._transport = transport
        self._path = at("/plans/", id)

    def get(self) -> Json:
        return self._transport.read("GET", self._path, has="steps")

    def progress(self) -> Items[PlanProgress]:
        """The plan's progress, now and after each change until it ends."""
        plan = self.get()
        steps = steps_of(plan)
        status: str = plan["status"]
        yield progress_of(plan, steps, status)
        if status not in ("queued", "running"):
            return
        for event in self.events():
            status = "running" if event.event == "plan_started" else status
            changed = change_of(event, steps)
            if changed is not None:
                steps[changed.id] = changed
                yield progress_of(plan, steps, status)
        ended = self.get()
        yield progress_of(ended, steps_of(ended), ended["status"])

    def events(self) -> Items[Event]:
        """The plan's events from the first one on."""

        def open_stream(last: str) -> OpenStream:
            return self._transport.open_stream(f"{self._path}/events", Call(last_event_id=last or None))

        return follow(self._transport, open_stream, event_of)

    def result(self) -> Json:
        """The plan once it has ended; `status` says whether its steps succeeded."""
        plan = self.get()
        for progress in self.progress():
            plan = progress.plan
        return plan

    def cancel(self) -> None:
        self._transport.json("POST", f"{self._path}/cancel")

    def retry(self) -> Plan:
        """Submits the unfinished steps of a plan that has ended."""
        plan = self._transport.read("POST", f"{self._path}/retry", has="id")
        return Plan(self._transport, plan["id"])


class Plans:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def submit(self, plan: Json, *, idempotency_key: Key = AUTO) -> Plan:
        call = Call(body=plan, key=key_of(idempotency_key))
        return self.of((self._transport.read("POST", "/plans/submit", call, has="id"))["id"])

    def estimate(self, plan: Json) -> Json:
        """Estimates the steps' first model calls and their cost. Nothing is submitted."""
        return self._transport.read("POST", "/plans/submit", Call(body=plan, query=DRY), has="budget")

    def of(self, id: str) -> Plan:
        """A plan that was submitted before."""
        return Plan(self._transport, id)

    def check(self, plan: Json) -> Json:
        """All problems of a plan, and its waves. Nothing is submitted."""
        return self._transport.read("POST", "/plans/check", Call(body=plan), has="waves")

    def list(self, **query: object) -> Pages:
        return Pages(self._transport, "/plans", query)
