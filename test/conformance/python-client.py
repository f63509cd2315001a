"""Plays scenarios of the kit with one of the Python client's twins: python python-client.py blocking|async URL < heads.json > outcomes.json"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from itertools import islice
from typing import Any

from agent_engine import (
    AgentEngine,
    AgentEngineError,
    ApiError,
    AsyncAgentEngine,
    AsyncPermissionAsk,
    ConnectionFailed,
    Event,
    FlowOutcome,
    PermissionAsk,
    PlanProgress,
    RunFailed,
    RunLost,
    Settings,
    TextPieces,
)

Json = dict[str, Any]

PLAN_ID = f"plan_{1:032}"
FLOW_INPUT = {"text": "Two chairs, 60 each"}


class Seen:
    """What the user of a client has got."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.text = ""
        #: The permission requests that came, which replies counted, and the requests that are left to others.
        self.asked: set[str] = set()
        self.counted: list[bool] = []
        self.left: list[PermissionAsk | AsyncPermissionAsk] = []
        self._pieces = TextPieces()

    def take(self, event: Event) -> None:
        self.ids.append(event.id)
        if event.event == "permission_request":
            self.asked.add(event.data["id"])
        self.text += self._pieces.take(event)

    def is_answered(self) -> bool:
        return len(self.counted) + len(self.left) == len(self.asked)

    def outcome(self, end: Json, output: str = "") -> Json:
        is_whole = end["end"] in ("done", "plan_queued")
        if is_whole and output != self.text:
            raise AssertionError(f"the text as it came and the output differ: {self.text!r}, {output!r}")
        counted = {"counted": self.counted} if self.counted else {}
        how = {"how": [how_of(ask) for ask in self.left]} if self.left else {}
        return {"events": len(self.ids), "text": self.text if is_whole else "", **end, **counted, **how, "ids": self.ids}


def settings_of(head: Json) -> Settings:
    return Settings(resume=10, stall=0.3 if head["name"] == "stall" else 10)


def key_of(head: Json) -> Json:
    return {"idempotency_key": None} if head.get("idempotency_key") is False else {}


def end_of(cause: AgentEngineError) -> Json:
    if isinstance(cause, RunFailed):
        return {"end": "error", "code": cause.code}
    ends = ((RunLost, "lost"), (ApiError, "refused"), (ConnectionFailed, "connection"))
    return {"end": next(end for kind, end in ends if isinstance(cause, kind))}


def end_as(stop_reason: str) -> Json:
    return {"end": "plan_queued" if stop_reason == "plan_queued" else "done"}


def flow_as(outcome: FlowOutcome, ids: list[int]) -> Json:
    end = {"end": "ok", "output": outcome.output} if outcome.ok else {"end": "invalid_output", "problems": len(outcome.problems)}
    return {"events": len(ids), **end, "ids": ids}


def progress_text(progress: PlanProgress) -> str:
    states = " ".join(step.status for step in progress.steps)
    return f"{progress.done}/{progress.total} {progress.status} {states}"


def progress_as(texts: list[str]) -> Json:
    return {"progress": texts}


def asks_as(asks: Sequence[PermissionAsk | AsyncPermissionAsk]) -> Json:
    return {"asks": [{"id": ask.id, "how": how_of(ask)} for ask in asks]}


def how_of(ask: PermissionAsk | AsyncPermissionAsk) -> str | None:
    return (ask.resolution or {}).get("how")


def play(url: str, head: Json) -> Json:
    with AgentEngine(f"{url}/{head['name']}", settings=settings_of(head)) as engine:
        if head.get("kind") == "flow":
            return play_flow(engine)
        if head.get("kind") == "plan":
            return progress_as([progress_text(each) for each in engine.plans.of(PLAN_ID).progress()])
        if head.get("kind") == "inbox":
            return asks_as(list(islice(engine.permissions.watch(), len(head["expect"]["asks"]))))
        return play_run(engine, head)


def play_flow(engine: AgentEngine) -> Json:
    ids: list[int] = []
    try:
        outcome = engine.flows.run("total", FLOW_INPUT, instance="main", on_event=lambda event: ids.append(event.id))
    except RunFailed as cause:
        return {"events": len(ids), "end": "error", "code": cause.code, "ids": ids}
    return flow_as(outcome, ids)


def play_run(engine: AgentEngine, head: Json) -> Json:
    seen, answered = Seen(), threading.Condition()

    def answer(ask: PermissionAsk) -> None:
        permissions = head.get("permissions")
        counts = permissions and (ask.deny("not now") if permissions == "deny" else ask.allow())
        with answered:
            seen.left.append(ask) if counts is None else seen.counted.append(counts)
            answered.notify()

    output = ""
    try:
        with engine.run("hi", on_permission=answer, **key_of(head)) as run:
            for event in run:
                seen.take(event)
            result = run.result()
            end, output = end_as(result.stop_reason), result.output
    except AgentEngineError as cause:
        end = end_of(cause)
    with answered:
        answered.wait_for(seen.is_answered, 10)
    seen.counted += [ask.allow() for ask in seen.left]
    return seen.outcome(end, output)


async def play_async(url: str, head: Json) -> Json:
    async with AsyncAgentEngine(f"{url}/{head['name']}", settings=settings_of(head)) as engine:
        if head.get("kind") == "flow":
            return await play_flow_async(engine)
        if head.get("kind") == "plan":
            return progress_as([progress_text(each) async for each in engine.plans.of(PLAN_ID).progress()])
        if head.get("kind") == "inbox":
            return await play_inbox_async(engine, len(head["expect"]["asks"]))
        return await play_run_async(engine, head)


async def play_flow_async(engine: AsyncAgentEngine) -> Json:
    ids: list[int] = []
    try:
        outcome = await engine.flows.run("total", FLOW_INPUT, instance="main", on_event=lambda event: ids.append(event.id))
    except RunFailed as cause:
        return {"events": len(ids), "end": "error", "code": cause.code, "ids": ids}
    return flow_as(outcome, ids)


async def play_inbox_async(engine: AsyncAgentEngine, most: int) -> Json:
    asks: list[AsyncPermissionAsk] = []
    async with aclosing(engine.permissions.watch()) as inbox:
        async for ask in inbox:
            asks.append(ask)
            if len(asks) == most:
                break
    return asks_as(asks)


async def play_run_async(engine: AsyncAgentEngine, head: Json) -> Json:
    seen, answered = Seen(), asyncio.Condition()

    async def answer(ask: AsyncPermissionAsk) -> None:
        permissions = head.get("permissions")
        counts = permissions and await (ask.deny("not now") if permissions == "deny" else ask.allow())
        async with answered:
            seen.left.append(ask) if counts is None else seen.counted.append(counts)
            answered.notify()

    output = ""
    try:
        async with engine.run("hi", on_permission=answer, **key_of(head)) as run:
            async for event in run:
                seen.take(event)
            result = await run.result()
            end, output = end_as(result.stop_reason), result.output
    except AgentEngineError as cause:
        end = end_of(cause)
    async with answered:
        await asyncio.wait_for(answered.wait_for(seen.is_answered), 10)
    seen.counted += [await ask.allow() for ask in seen.left]
    return seen.outcome(end, output)


async def play_all(url: str, heads: list[Json]) -> list[Json]:
    return list(await asyncio.gather(*(play_async(url, head) for head in heads)))


def main(twin: str, url: str) -> None:
    heads = json.load(sys.stdin)
    if twin == "async":
        outcomes = asyncio.run(play_all(url, heads))
    else:
        with ThreadPoolExecutor(len(heads)) as threads:
            outcomes = list(threads.map(lambda head: play(url, head), heads))
    json.dump({head["name"]: outcome for head, outcome in zip(heads, outcomes)}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
