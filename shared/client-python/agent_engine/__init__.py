"""The Python client of agent-engine: `AgentEngine` blocks, `AsyncAgentEngine` awaits. Both are the same in all else."""

from ._blocking import AgentEngine, PermissionAsk, Plan, Run, Session
from ._engine import AsyncAgentEngine, AsyncSession, FlowOutcome
from ._follow import Event
from ._pages import Page
from ._permissions import AsyncPermissionAsk
from ._plans import AsyncPlan, PlanProgress, PlanStep
from ._run import AsyncRun, RunResult, TextPieces
from ._tenant_events import TenantEvent
from ._transport import Settings
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
]
