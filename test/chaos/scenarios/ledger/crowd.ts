import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import { now } from '../../history.ts'
import { gatewayFor } from '../../sessions.ts'
import type { StreamClient } from '../../stream-client.ts'
import type { World } from '../../world.ts'

export type Crowd = {
  runs: number
  customers: readonly string[]
  /** A third of the runs ends about this long after all have started. */
  crowdMs: number
  /** The other runs end evenly distributed over this time afterwards. */
  longMs: number
  random: Random
}

const CROWD_PART = 1 / 3
const SPREAD = { from: 0.85, to: 1.25 }
const AT_ONCE = 40
const OPEN_WITHIN_MS = 10_000
const RETRY_MS = 100

/** Starts runs of customers. Resolves when each has its headers. The third that ends together starts last. */
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

/** Starts a run and retries when it is refused. Throws after 10 s of refusals. */
export async function openRun(
  world: World,
  { n, customer, forMs = 0 }: { n: number; customer: string; forMs?: number },
): Promise<StreamClient> {
  const body = { prompt: `/sleep ${forMs}\n/say answer ${n}`, customer_id: customer }
  for (const deadline = now() + OPEN_WITHIN_MS; now() < deadline; await sleep(RETRY_MS)) {
    const stream = world.stream(gatewayFor(world, n), { path: '/agent/run', body, customer })
    if ((await stream.opened) === 200) return stream
  }
  throw new Error(`a run was refused for ${OPEN_WITHIN_MS} ms`)
}
