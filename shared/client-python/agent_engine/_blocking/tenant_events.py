# Generated from ../_async/tenant_events.py by scripts/blocking-client.py: edit that file instead.
"""The events of a tenant's runs, permission requests, plans, flows and settings."""

from __future__ import annotations

from collections.abc import Sequence

from .._blocking_io import Items
from .._documents import TenantEvent
from .._requests import Call
from .follow import follow
from .transport import OpenStream, Transport


def tenant_events(
    transport: Transport, *, types: Sequence[str] = (), after: str = "", reset: bool = False
) -> Items[TenantEvent]:
    """`reset` comes when events may be missing, also when a connection breaks before its first event; with `reset`
    also when the stream has opened.
    """
    may_miss = reset

    def open_stream(last: str) -> OpenStream:
        nonlocal may_miss
        query = {"types": ",".join(types) or None}
        stream = transport.open_stream("/events", Call(query=query, last_event_id=last or None))
        stream.is_reset = may_miss and not last
        may_miss = True
        return stream

    return follow(transport, open_stream, TenantEvent, after=after, is_numbered=False)
