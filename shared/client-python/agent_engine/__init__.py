"""The Python client of agent-engine: `AgentEngine` blocks, `AsyncAgentEngine` awaits. They do not differ otherwise."""

from ._async.engine import AsyncAgentEngine, AsyncSession
from ._async.permissions import AsyncPermissionAsk
from ._async.plans import AsyncPlan
from ._async.run import AsyncRun
from ._blocking.engine import AgentEngine, Session
from ._blocking.permissions import PermissionAsk
from ._blocking.plans import Plan
from ._blocking.run import Run
from ._documents import FlowOutcome, Page, PlanProgress, PlanStep, RunResult, TenantEvent
from ._events import Event, TextPieces
from ._reading import show_controls, show_hidden, show_json
from ._requests import Settings
from .errors import AgentEngineError, ApiError, ConnectionFailed, RunFailed, RunLost

__all__ = [
    "AgentEngine",
    "AgentEngineError",
    "ApiError",
    "AsyncAgentEngine",
    "AsyncPermissionAsk",
    "AsyncPlan",
    "AsyncRun",
    "AsyncSession",
    "ConnectionFailed",
    "Event",
    "FlowOutcome",
    "Page",
    "PermissionAsk",
    "Plan",
    "PlanProgress",
    "PlanStep",
    "Run",
    "RunFailed",
    "RunLost",
    "RunResult",
    "Session",
    "Settings",
    "TenantEvent",
    "TextPieces",
    "show_controls",
    "show_hidden",
    "show_json",
]
