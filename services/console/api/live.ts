import { signal } from '@preact/signals'
import type { TenantEvent } from '../../../shared/client/api.ts'
import { type EventId, follow } from '../../../shared/client/http/follow.ts'
import { transport } from './engine.ts'

/** `resuming`: the connection broke and is being made again. */
export type LiveState = 'connecting' | 'live' | 'resuming'

export const liveState = signal<LiveState>('connecting')

type Listener = (event: TenantEvent) => void

const listeners = new Set<Listener>()

/** Calls the listener for each of the tenant's events, until the returned function is called. `reset` says that some are gone. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

let abort: AbortController | undefined

/** Follows `GET /events` with the tab's one connection for it. A browser allows few connections to a host at a time. */
export async function goLive(): Promise<void> {
  abort?.abort()
  const own = new AbortController()
  abort = own
  let after: string | undefined
  while (!own.signal.aborted) {
    try {
      for await (const event of readEvents(after, own.signal)) {
        after = event.id
        for (const listener of listeners) listener(event)
      }
    } catch {
      liveState.value = 'resuming' // The server is away or refuses: the tab never gives up, and goes on with what it has.
      await new Promise((resolve) => setTimeout(resolve, 5_000))
    }
  }
}

async function* readEvents(after: string | undefined, signal_: AbortSignal): AsyncGenerator<TenantEvent> {
  const mayMiss = liveState.peek() !== 'connecting'
  const open = async (lastEventId: EventId | undefined) => {
    if (liveState.peek() === 'live') liveState.value = 'resuming'
    const stream = await transport().openStream('GET', '/events', { lastEventId, signal: signal_ })
    liveState.value = 'live'
    return stream
  }
  yield* follow({ open, mayMiss, after, signal: signal_ }) as AsyncGenerator<TenantEvent>
}
