import { setTimeout as sleep } from 'node:timers/promises'
import { allOf, type Guarantee, none, quantileOf } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { noViolations } from '../checker.ts'
import type { SeenMessage } from '../proxy/faults.ts'
import { World } from '../world.ts'
import { type OrphanedRequests, replyToDeadWorkers } from './permission-races/dead-workers.ts'
import {
  type RaceKind,
  type RaceResult,
  replyAtEdge,
  replyWithoutNotification,
  twoReplies,
} from './permission-races/kinds.ts'

type Size = { pairs: number; edges: number; unnotified: number; killRounds: number }

const SHORT: Size = { pairs: 40, edges: 120, unnotified: 20, killRounds: 1 }
const FULL: Size = { pairs: 5_000, edges: 3_000, unnotified: 2_000, killRounds: 10 }
/** How many requests wait when their workers are killed. */
const REQUESTS_PER_KILL = 30
/**
 * Races at the same time: few enough that the machine's load does not determine the times. Races that mostly wait start
 * staggered over `spreadMs`, so that they do not all act at the same moment.
 */
const LOADS = {
  pairs: { atOnce: 3, spreadMs: 0 },
  edges: { atOnce: 150, spreadMs: 3_000 },
  unnotified: { atOnce: 16, spreadMs: 500 },
}
const WORKERS = 2
/**
 * PERMISSION_TIMEOUT_SECS of the cluster: long enough for many requests to wait at the same time on a busy machine, and shorter than
 * the 4 s after which the gateways know of a worker's death.
 */
const TIMEOUT_SECS = 3
/** The part of the races at the timeout that each side must win, so that they really were races. */
const EDGE_SHARE = 0.1

/** Replies race each other and the timeout, the notification of a reply is dropped, and workers are killed before the timeout. */
export const permissionRaces: Scenario = {
  id: 'P6',
  promise: 'a permission reply that is answered ok is what the engine does',
  run,
}

async function run({ isFull, random }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  const env = { PERMISSION_TIMEOUT_SECS: String(TIMEOUT_SECS) }
  // A gateway behind a proxy of this script, which is busy with the races, would find Redis slow.
  await using world = await World.open({ random, env, gateways: 2, workers: WORKERS, hasProxies: 'worker' })
  const drop = await dropNotifications(world)
  const load = (races: number, name: keyof typeof LOADS) => ({ races, ...LOADS[name], random: random.fork(name) })
  const pairs = await raceAll(world, twoReplies, load(size.pairs, 'pairs'))
  const [edges, unnotified] = await Promise.all([
    raceAll(world, replyAtEdge(TIMEOUT_SECS * 1000), load(size.edges, 'edges')),
    raceAll(world, replyWithoutNotification(drop), load(size.unnotified, 'unnotified')),
  ])
  const lost = droppedIn(world)
  const orphaned = await killWorkers(world, size.killRounds, random)
  return [
    ...guaranteesOf({ pairs, edges, unnotified, lost }),
    ...guaranteesOfDeaths(orphaned),
    noViolations(world.check()),
  ]
}

async function killWorkers(world: World, rounds: number, random: Random): Promise<OrphanedRequests[]> {
  const results: OrphanedRequests[] = []
  for (let n = 1; n <= rounds; n++) {
    world.endRound()
    if (n > 1) await Promise.all(Array.from({ length: WORKERS }, () => world.start('worker')))
    const round = { requests: REQUESTS_PER_KILL, timeoutMs: TIMEOUT_SECS * 1000, random: random.fork(`kill ${n}`) }
    results.push(await replyToDeadWorkers(world, round))
  }
  return results
}

type Load = { races: number; atOnce: number; spreadMs: number; random: Random }

async function raceAll(world: World, kind: RaceKind, { races, atOnce, spreadMs, random }: Load): Promise<RaceResult[]> {
  const results: RaceResult[] = []
  const queue = Array.from({ length: races }, (_, i) => random.fork(`race ${i}`)).values()
  const worker = async (_: unknown, i: number) => {
    await sleep((i * spreadMs) / atOnce)
    for (const fork of queue) results.push(await kind(world, fork).catch(failed))
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}

/** A race that threw counts as a broken promise. */
const failed = (cause: unknown): RaceResult => ({ resumedInMs: 0, wasReplied: false, problem: String(cause) })

/** Returns a function that makes the proxies drop the notification of one request's decision, so that the worker must poll. */
async function dropNotifications(world: World): Promise<(request: string) => void> {
  const dropped = new Set<string>()
  const drop = ({ channel, payload }: SeenMessage) => channel.startsWith('ae:bell:') && dropped.has(payload.toString())
  await Promise.all(world.workers.map(async ({ proxy }) => proxy?.mode({ drop })))
  return (request) => void dropped.add(request)
}

const droppedIn = ({ workers }: World): number => sumOf(workers.map(({ proxy }) => proxy?.stats.dropped ?? 0))

/** `lost`: the notifications that the proxies have dropped. */
type Races = { pairs: RaceResult[]; edges: RaceResult[]; unnotified: RaceResult[]; lost: number }

function guaranteesOf({ pairs, edges, unnotified, lost }: Races): Guarantee[] {
  const all = [...pairs, ...edges, ...unnotified]
  const wrong = all.flatMap(({ problem }) => problem ?? [])
  const replied = edges.filter(({ wasReplied }) => wasReplied).length
  const atEdge = Math.min(replied, edges.length - replied)
  const resumed = (races: readonly RaceResult[]) =>
    races.filter((race) => race.wasReplied).map((race) => race.resumedInMs)
  return [
    {
      ...allOf('races', all.length, all.length),
      detail: `${pairs.length} pairs, ${edges.length} at the timeout, ${unnotified.length} without a notification`,
    },
    none('races without exactly one winner that the engine follows', wrong.length, wrong[0]),
    {
      ...allOf('races at the timeout won by each side', atEdge, Math.ceil(edges.length * EDGE_SHARE)),
      unit: ' races', // A machine that is too busy for any reply to be in time has raced too little, and has broken nothing.
      detail: `${replied} by a reply, ${edges.length - replied} by the timeout`,
    },
    quantileOf('from reply to resumption, p99', resumed(pairs), { part: 0.99, atMost: 100 }),
    allOf('notifications lost, of those replied in time', lost, unnotified.filter((race) => race.wasReplied).length),
    quantileOf('from reply to resumption without a notification, p99', resumed(unnotified), {
      part: 0.99,
      atMost: 700,
    }),
  ]
}

function guaranteesOfDeaths(rounds: readonly OrphanedRequests[]): Guarantee[] {
  const count = sumOf(rounds.map((round) => round.count))
  const late = rounds.flatMap((round) => round.late)
  const accepted = late.filter((status) => status !== 404)
  return [
    // On a busy machine some requests expire before the workers are killed.
    {
      ...allOf('requests of killed workers', count, (rounds.length * REQUESTS_PER_KILL) / 2),
      detail: `in ${rounds.length} rounds`,
    },
    none('replies after the deadline that are not 404', accepted.length, `of ${late.length}: ${accepted.slice(0, 5)}`),
    none('requests listed after the deadline', sumOf(rounds.map(({ listed }) => listed))),
  ]
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0)
