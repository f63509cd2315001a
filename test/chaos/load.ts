import { setTimeout as sleep } from 'node:timers/promises'
import { now } from './history.ts'
import { gatewayFor } from './sessions.ts'
import type { Ended, StreamClient } from './stream-client.ts'
import type { World } from './world.ts'

const AT_ONCE = 40
const REFUSED_FOR_MS = 5_000
const AGAIN_MS = 200

/**
 * Starts one-shot runs, evenly through all gateways; resolves once each streams. One that is refused for the moment is sent
 * again, as its Retry-After asks for; throws when that goes on.
 */
export async function openRuns(world: World, count: number, promptOf: (n: number) => string): Promise<StreamClient[]> {
  const streams: StreamClient[] = []
  while (streams.length < count) {
    const more = Math.min(AT_ONCE, count - streams.length)
    const opening = Array.from({ length: more }, (_, n) => openRun(world, streams.length + n, promptOf))
    streams.push(...(await Promise.all(opening)))
  }
  return streams
}

async function openRun(world: World, n: number, promptOf: (n: number) => string): Promise<StreamClient> {
  const until = now() + REFUSED_FOR_MS
  while (true) {
    const stream = world.run(gatewayFor(world, n), { prompt: promptOf(n) })
    await stream.atLeast(1)
    const status = await stream.opened
    if (status === 200) return stream
    if (![429, 503].includes(status) || now() > until)
      throw new Error(`a run was refused with ${status}: ${stream.refusal}`)
    await sleep(AGAIN_MS)
  }
}

/** Reads runs once more from their beginnings, through other gateways: what two see of a run is held together by the checker. */
export async function readAgain(world: World, streams: readonly StreamClient[]): Promise<void> {
  const again = streams.map(({ run }, n) => world.stream(gatewayFor(world, n), { path: `/runs/${run}/events` }))
  await Promise.all(again.map(({ ended }) => ended))
}

/** Waits for the ends of all, each within the time, counted from now; whose end is not there by then is `undefined`. */
export async function endsOf(streams: readonly StreamClient[], withinMs: number): Promise<(Ended | undefined)[]> {
  const timer = new AbortController()
  const late = sleep(withinMs, undefined, { signal: timer.signal }).catch(() => undefined)
  try {
    return await Promise.all(streams.map(({ ended }) => Promise.race([ended, late])))
  } finally {
    timer.abort()
  }
}

/** How a stream ended, in few words. */
export function wordsFor(ended: Ended | undefined): string {
  if (!ended) return 'never'
  const { status, how, terminal } = ended
  if (how === 'left') return how
  if (status !== 200) return status === 0 ? 'no answer' : `status ${status}`
  if (!terminal) return how
  return terminal.code ?? terminal.event
}

/** `12 done, 3 worker_lost`. */
export function tally(ends: readonly (Ended | undefined)[]): string {
  const counts = Map.groupBy(ends.map(wordsFor), (word) => word)
  return [...counts].map(([word, { length }]) => `${length} ${word}`).join(', ')
}
