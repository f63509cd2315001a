import type { TenantEvent, TenantEventName } from '../api.ts'
import { follow } from '../http/follow.ts'
import type { OpenStream } from '../http/open-stream.ts'
import type { CallOptions, Transport } from '../http/transport.ts'

export type TenantEventsOptions = Omit<CallOptions, 'timeoutMs'> & {
  /** All unless given. */
  types?: readonly TenantEventName[]
  /** The id of the last event that the reader has. */
  after?: string | undefined
  /** Whether the first event is a `reset`, which comes once the stream is open: what happens from then on is not missed. */
  isReset?: boolean
}

/**
 * The tenant's events, over as many connections as that takes, until the signal is aborted or the loop is left. `reset`
 * comes when events are missing, also when a connection breaks before its first event.
 */
export async function* tenantEvents(
  transport: Transport,
  { types, after, isReset = false, ...call }: TenantEventsOptions,
): AsyncGenerator<TenantEvent, void, undefined> {
  const query = { types: types?.join(',') }
  let mayMiss = isReset
  const events = follow({
    async open(last) {
      const lastEventId = last || undefined
      const stream = await transport.openStream('/events', { query, lastEventId, ...call })
      const isFirst = mayMiss && lastEventId === undefined
      mayMiss = true
      return isFirst ? { ...stream, events: afterReset(stream.events) } : stream
    },
    meaningOf: ({ event }) => (event === 'error' ? 'broken' : 'next'),
    after,
    signal: call.signal,
    resumeMs: transport.resumeMs,
  })
  for await (const { id, event, data } of events)
    yield { id, event: event as TenantEvent['event'], data: JSON.parse(data) as TenantEvent['data'] }
}

async function* afterReset(events: OpenStream['events']): OpenStream['events'] {
  yield { id: '', event: 'reset', data: '{}' }
  yield* events
}
