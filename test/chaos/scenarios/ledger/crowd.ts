import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import { now } from '../../history.ts'
import { gatewayFor } from '../../sessions.ts'
import type { StreamClient } from '../../stream-client.ts'
import type { World } from '../../world.ts'

export type Crowd = {
  runs: number
  customers: readonly string[]
  /** A third of the runs ends about so long after all have begun ... */
  crowdMs: number
  /** ... and the others spread over so much time behind it. */
  longMs: number
  random: Random
}

const CROWD_PART = 1 / 3
const SPREAD = { from: 0.85, to: 1.25 }
const AT_ONCE = 40
const OPEN_WITHIN_MS = 10_000
const AGAIN_MS = 100

/** Starts runs of customers; resolves once each streams. Those that end together come last. */
export async function openRuns(world: World, crowd: Crowd): Promise<StreamClient[]> {
  const { runs, customers, random } = crowd
  const streams: StreamClient[] = []
  while (streams.length < runs) {
    const batch = Array.from({ length: Math.min(AT_ONCE, runs - streams.length) }, (_, at) => {
      const n = streams.length + at
      return openRun(world, { n, customer: random.pick(customers), forMs: durationOf(n, crowd) })
    })
    streams.push(...(await Promise.all(batch)))
  }
  return streams
}

function durationOf(n: number, { runs, crowdMs, longMs, random }: Crowd): number {
  const [from, to] = [crowdMs * SPREAD.from, crowdMs * SPREAD.to].map(Math.round) as [number, number]
  return n >= runs * (1 - CROWD_PART) ? random.between(from, to) : random.between(to, to + longMs)
}

/** Again when it is refused for the moment. Throws when that lasts. */
export async function openRun(
  world: World,
  { n, customer, forMs = 0 }: { n: number; customer: string; forMs?: number },
): Promise<StreamClient> {
  const body = { prompt: `/sleep ${forMs}\n/say answer ${n}`, customer_id: customer }
  for (const deadline = now() + OPEN_WITHIN_MS; now() < deadline; await sleep(AGAIN_MS)) {
    const stream = world.stream(gatewayFor(world, n), { path: '/agent/run', body, customer })
    if ((await stream.opened) === 200) return stream
  }
  throw new Error(`a run was refused for ${OPEN_WITHIN_MS} ms`)
}
