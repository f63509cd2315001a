"""What happens to a tenant's runs, permission requests, plans, flows and settings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from ._follow import follow
from ._transport import Call, Json, OpenStream, Transport


@dataclass(frozen=True)
class TenantEvent:
    """`event` is `reset` when some events are gone: read again what you show."""

    id: str
    event: str
    data: Json


def tenant_events(
    transport: Transport, *, types: Sequence[str] = (), after: str = "", is_reset: bool = False
) -> AsyncGenerator[TenantEvent, None]:
    """`reset` comes when events are missing, also when a connection breaks before its first event; with `is_reset` also when the stream is open."""
    may_miss = is_reset

    async def open_stream(last: str) -> OpenStream:
        nonlocal may_miss
        query = {"types": ",".join(types) or None}
        stream = await transport.open_stream("/events", Call(query=query, last_event_id=last or None))
        stream.is_reset = may_miss and not last
        may_miss = True
        return stream

    return follow(transport, open_stream, TenantEvent, after=after, is_numbered=False)
