import type { TenantEvent, TenantEventName } from '../api.ts'
import { type FollowedEvent, follow } from '../http/follow.ts'
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
export function tenantEvents(
  transport: Transport,
  { types, after, isReset = false, ...call }: TenantEventsOptions,
): AsyncGenerator<TenantEvent, void, undefined> {
  let mayMiss = isReset
  const open = async (last: string | undefined) => {
    const stream = await transport.openStream('/events', {
      query: { types: types?.join(',') },
      lastEventId: last || undefined,
      ...call,
    })
    const isMissing = mayMiss && !last
    mayMiss = true
    return isMissing ? { ...stream, events: afterReset(stream.events) } : stream
  }
  const events: AsyncGenerator<FollowedEvent, void, undefined> = follow({
    open,
    isNumbered: false,
    after,
    signal: call.signal,
    resumeMs: transport.resumeMs,
  })
  return events as AsyncGenerator<TenantEvent, void, undefined>
}

async function* afterReset(events: OpenStream['events']): OpenStream['events'] {
  yield { id: '', event: 'reset', data: '{}' }
  yield* events
}
