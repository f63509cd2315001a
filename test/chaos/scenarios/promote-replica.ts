import { allOf, type Guarantee, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { startRedisGroup } from '../../support/redis-group.ts'
import { noViolations } from '../checker.ts'
import { describeEnd, endsOf, openRuns, readAgain, tally } from '../load.ts'
import { paced } from '../prompts.ts'
import { countSessions, createSessions } from '../sessions.ts'
import { timeUntil } from '../time-until.ts'
import { World } from '../world.ts'

const SESSIONS = 20
const STREAMS = { short: 10, full: 200 }
const WORKERS = { short: 2, full: 4 }
const ROUND_MS = 10_000
const NORMAL_MS = 5_000
const STREAMS_END_WITHIN_MS = 30_000
const READ_AGAIN = 20

/** Kills Redis's primary and promotes a replica that lags: it knows neither the last sessions nor the last worker. */
export const promoteReplica: Scenario = {
  id: 'P3',
  promise: 'streams and sessions survive when Redis fails over to a replica that lags',
  run: measure,
}

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const form = isFull ? 'full' : 'short'
  const group = await startRedisGroup()
  try {
    await using world = await World.open({ random, redisUrl: group.url, workers: WORKERS[form] })
    const known = await createSessions(world, SESSIONS)
    await group.synchronized()
    await group.lag()
    await world.start('worker')
    const sessions = [...known, ...(await createSessions(world, SESSIONS))]
    const count = STREAMS[form]
    const streams = await openRuns(world, count, () => paced({ count: ROUND_MS / 100, everyMs: 100 }))
    await group.failOver()
    const normalInMs = await measureNormal(world, sessions)
    const ends = await endsOf(streams, STREAMS_END_WITHIN_MS)
    const done = streams.filter((_, n) => describeEnd(ends[n]) === 'done')
    await readAgain(world, done.slice(0, READ_AGAIN))
    say(`failed over under ${count} streams: ${tally(ends)}; all sessions served after ${Math.round(normalInMs)} ms`)
    return [
      allOf('streams done over the failover', done.length, streams.length),
      allOf('sessions that exist afterwards', await countSessions(world, sessions), sessions.length),
      slowest('from the failover until all sessions are served', [normalInMs], NORMAL_MS),
      noViolations(world.check()),
    ]
  } finally {
    await group.stop()
  }
}

/** Time until every session is served. */
const measureNormal = (world: World, sessions: readonly string[]): Promise<number> =>
  timeUntil(async () => (await countSessions(world, sessions)) === sessions.length, 4 * NORMAL_MS)
