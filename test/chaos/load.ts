import { setTimeout as sleep } from 'node:timers/promises'
import { now } from './history.ts'
import { gatewayFor } from './sessions.ts'
import type { Ended, StreamClient } from './stream-client.ts'
import type { World } from './world.ts'

const AT_ONCE = 40
const ACCEPTED_WITHIN_MS = 5_000
const RETRY_MS = 200

/**
 * Starts one-shot runs, evenly through all gateways. Resolves when each has sent its first event. A temporary refusal is
 * retried for 5 s; then it throws.
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
  const until = now() + ACCEPTED_WITHIN_MS
  while (true) {
    const stream = world.run(gatewayFor(world, n), { prompt: promptOf(n) })
    await stream.atLeast(1)
    const status = await stream.opened
    if (status === 200) return stream
    if (![429, 503].includes(status) || now() > until)
      throw new Error(`a run was refused with ${status}: ${stream.refusal}`)
    await sleep(RETRY_MS)
  }
}

/** Reads runs again from the start, through other gateways: the checker compares what the two readers received. */
export async function readAgain(world: World, streams: readonly StreamClient[]): Promise<void> {
  const again = streams.map(({ run }, n) => world.stream(gatewayFor(world, n), { path: `/runs/${run}/events` }))
  await Promise.all(again.map(({ ended }) => ended))
}

type Ending = Pick<StreamClient, 'ended' | 'frames'>

/**
 * Waits for the ends of all streams. `undefined` for a stream that stands still: no frame has come for `withinMs`. One whose frames come is
 * awaited, because on a busy machine a run takes as long as it takes.
 */
export async function endsOf(streams: readonly Ending[], withinMs: number): Promise<(Ended | undefined)[]> {
  const timers = new AbortController()
  try {
    return await Promise.all(streams.map((stream) => endOf(stream, withinMs, timers.signal)))
  } finally {
    timers.abort()
  }
}

async function endOf(stream: Ending, withinMs: number, signal: AbortSignal): Promise<Ended | undefined> {
  for (;;) {
    const { frames } = stream
    const late = sleep(withinMs, undefined, { signal }).catch(() => undefined)
    const ended = await Promise.race([stream.ended, late])
    if (ended || stream.frames === frames) return ended
  }
}

/** How a stream ended, in one or two words. */
export function describeEnd(ended: Ended | undefined): string {
  if (!ended) return 'never'
  const { status, how, terminal } = ended
  if (how === 'left') return how
  if (status !== 200) return status === 0 ? 'no answer' : `status ${status}`
  if (!terminal) return how
  return terminal.code ?? terminal.event
}

/** `12 done, 3 worker_lost`. */
export function tally(ends: readonly (Ended | undefined)[]): string {
  const counts = Map.groupBy(ends.map(describeEnd), (word) => word)
  return [...counts].map(([word, { length }]) => `${length} ${word}`).join(', ')
}
