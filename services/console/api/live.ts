import { signal } from '@preact/signals'
import type { TenantEvent } from '../../../shared/client/api.ts'
import { type EventId, follow } from '../../../shared/client/http/follow.ts'
import { leaving, ofTab } from '../base/tab.ts'
import { transport } from './engine.ts'

/** `resuming`: the connection broke and is being made again. */
export type LiveState = 'connecting' | 'live' | 'resuming'

export const liveState = ofTab(() => signal<LiveState>('connecting'))

type Listener = (event: TenantEvent) => void

const listeners = ofTab(() => new Set<Listener>())

/** Calls the listener for each of the tenant's events, until the returned function is called. `reset` means that some events were lost. */
export function onEvent(listener: Listener): () => void {
  const known = listeners()
  known.add(listener)
  return () => void known.delete(listener)
}

/** Makes all shown data be read again, as after a gap in the events. */
export function readAgain(): void {
  for (const listener of listeners()) listener({ event: 'reset', data: {} } as TenantEvent)
}

/** Follows `GET /events` with the tab's one connection for it. A browser allows few connections to a host at a time. */
export async function goLive(): Promise<void> {
  const { signal: left } = leaving()
  let after: string | undefined
  while (!left.aborted) {
    try {
      for await (const event of readEvents(after, left)) {
        after = event.id
        for (const listener of listeners()) listener(event)
      }
    } catch {
      liveState().value = 'resuming' // The server does not answer or refuses: the tab never gives up, and keeps showing its data.
      await new Promise((resolve) => setTimeout(resolve, 5_000))
    }
  }
}

async function* readEvents(after: string | undefined, left: AbortSignal): AsyncGenerator<TenantEvent> {
  const state = liveState()
  const mayMiss = state.peek() !== 'connecting'
  const open = async (lastEventId: EventId | undefined) => {
    if (state.peek() === 'live') state.value = 'resuming'
    const stream = await transport().openStream('GET', '/events', { lastEventId, signal: left })
    state.value = 'live'
    return stream
  }
  yield* follow({ open, reset: mayMiss, after, signal: left }) as AsyncGenerator<TenantEvent>
}
