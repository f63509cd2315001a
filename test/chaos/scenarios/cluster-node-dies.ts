import { Redis } from 'ioredis'
import type { RedisServer } from '../../../scripts/local-services/redis.ts'
import { startRedisCluster } from '../../../scripts/local-services/redis-cluster.ts'
import { allOf, type Guarantee, none, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { noViolations } from '../checker.ts'
import { sumCounter, sumGauge } from '../counters.ts'
import { now, ofKind } from '../history.ts'
import { describeEnd, endsOf, openRuns, tally } from '../load.ts'
import { paced } from '../prompts.ts'
import { countSessions, createSessions } from '../sessions.ts'
import { timeUntil } from '../time-until.ts'
import { World } from '../world.ts'

const STREAMS = 1_000
const SESSIONS = 60
/** 2,000 events a second: the nodes and all processes share the machine. */
const EVERY_MS = 500
const ROUND_MS = 40_000
/** The node's timeout of 2 s, the election of its replica, and the members' renewals afterwards. */
const GOES_ON_MS = 10_000
const TAKEN_OVER_MS = 5_000
const STANDS_STILL_MS = 30_000
const MEMBERS = 'ae:{members}'

/** Kills the node that has the members, and then one that has only channels of workers, each under 1,000 streams. */
export const clusterNodeDies: Scenario = {
  id: 'P3',
  promise: 'streams and sessions survive when nodes of a Redis Cluster die and their replicas take over',
  isFullOnly: true,
  run: measure,
}

async function measure({ random, say }: ScenarioOptions): Promise<Guarantee[]> {
  await using redis = await startRedisCluster({ hasReplicas: true })
  const nodes = redis.nodes.map(({ host, port }) => `${host}:${port}`).join(',')
  await using world = await World.open({ random, env: { REDIS_CLUSTER: nodes } })
  const sessions = await createSessions(world, SESSIONS)
  const goOn: number[] = []
  const ends: string[] = []
  for (const findNode of [() => primaryOf(redis.servers, MEMBERS), () => nodeOfChannelsOnly(world, redis.servers)]) {
    const streams = await openRuns(world, STREAMS, () => paced({ count: ROUND_MS / EVERY_MS, everyMs: EVERY_MS }))
    const node = await findNode()
    const from = now()
    await node.kill('SIGKILL')
    const servedInMs = await timeUntil(async () => (await countSessions(world, sessions)) === SESSIONS, STANDS_STILL_MS)
    const round = await endsOf(streams, STANDS_STILL_MS)
    const wentOnInMs = lastResumption(world, from) - from
    goOn.push(wentOnInMs, servedInMs)
    ends.push(...round.map(describeEnd))
    say(
      `a node died under ${STREAMS} streams: ${tally(round)}; all go on after ${Math.round(wentOnInMs)} ms, all sessions are served after ${Math.round(servedInMs)} ms`,
    )
    world.endRound()
    await node.restart()
    await timeUntil(() => isInStep(node), STANDS_STILL_MS)
  }
  const [asked, repaired, lost] = await Promise.all(
    (['gaps_asked', 'gaps_repaired', 'gaps_lost'] as const).map((name) => sumCounter(world.gateways, name)),
  )
  return [
    allOf('streams done over the death of a node', ends.filter((end) => end === 'done').length, ends.length),
    { ...none('gaps that were not repaired', lost ?? 0), detail: `${asked} asked, ${repaired} repaired` },
    allOf('sessions that exist afterwards', await countSessions(world, sessions), SESSIONS),
    none('sessions that a second worker has', (await sumGauge(world.workers, 'sessions')) - SESSIONS),
    slowest('from the death until all streams go on and all sessions are served', goOn, GOES_ON_MS),
    noViolations(world.check()),
  ]
}

async function primaryOf(servers: readonly RedisServer[], key: string): Promise<RedisServer> {
  for (const server of servers) {
    const answer = await ask(server, (client) => client.type(key)).catch(() => undefined) // Another node has it.
    if (answer !== undefined) return server
  }
  throw new Error(`no node has ${key}`)
}

async function nodeOfChannelsOnly({ workers }: World, servers: readonly RedisServer[]): Promise<RedisServer> {
  const ofMembers = await primaryOf(servers, MEMBERS)
  for (const { proc } of workers) {
    const { id } = JSON.parse(proc.ready[0]) as { id: string }
    const node = await primaryOf(servers, `ae:wk:${id.slice(id.indexOf('_') + 1)}`)
    if (node !== ofMembers) return node
  }
  throw new Error('the channels of all workers are at the node of the members: try another seed')
}

/** A node that comes back is a replica, and replaces another one only when it has been in step. */
const isInStep = async (node: RedisServer): Promise<boolean> =>
  (await ask(node, (client) => client.info('replication'))).includes('master_link_status:up')

async function ask<T>({ url }: RedisServer, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url).on('error', () => {})
  try {
    return await work(client)
  } finally {
    client.disconnect()
  }
}

/** When the last stream got its next event after a silence that began at the death of a node: before its replica has taken over. */
function lastResumption(world: World, from: number): number {
  const last = new Map<string, number>()
  let resumedAt = from
  for (const { stream = '', t } of ofKind(world.history, 'frame')) {
    const before = last.get(stream)
    const isSilence = before !== undefined && before < from + TAKEN_OVER_MS && t - before > 2 * EVERY_MS
    if (isSilence && t > from) resumedAt = Math.max(resumedAt, t)
    last.set(stream, t)
  }
  return resumedAt
}
