import type { TenantEvent, TenantEventName } from '../api.ts'
import { follow } from '../http/follow.ts'
import type { CallOptions, Transport } from '../http/transport.ts'

export type TenantEventsOptions = Omit<CallOptions, 'timeoutMs'> & {
  /** By default all types. */
  types?: readonly TenantEventName[]
  /** The id of the last event that the reader has. */
  after?: string | undefined
  /** Whether the first event is a `reset`. It comes once the stream is open: later events are not missed. */
  reset?: boolean
}

/**
 * The tenant's events, over as many connections as needed, until the signal is aborted or the loop is left. `reset`
 * comes when events may be missing, also when a connection breaks before its first event.
 */
export function tenantEvents(
  transport: Transport,
  { types, after, reset = false, ...call }: TenantEventsOptions,
): AsyncGenerator<TenantEvent, void, undefined> {
  const query = { types: types?.join(',') }
  const events = follow({
    open: (lastEventId) => transport.openStream('GET', '/events', { query, lastEventId, ...call }),
    reset,
    after,
    signal: call.signal,
  })
  return events as AsyncGenerator<TenantEvent, void, undefined>
}
