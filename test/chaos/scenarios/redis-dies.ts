import { setTimeout as sleep } from 'node:timers/promises'
import { allOf, type Guarantee, none, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { noViolations } from '../checker.ts'
import { follow } from '../follow.ts'
import { now } from '../history.ts'
import { describeEnd, endsOf, openRuns, readAgain, tally } from '../load.ts'
import { paced } from '../prompts.ts'
import { assessOutage, type Outage, SessionProber } from '../session-prober.ts'
import { countSessions, createSessions } from '../sessions.ts'
import type { Ended } from '../stream-client.ts'
import { World } from '../world.ts'

type Size = {
  workers: number
  streams: number
  sessions: number
  deaths: number
  freezes: number
  resets: number
  resetsForMs: number
}

const SHORT: Size = { workers: 2, streams: 8, sessions: 8, deaths: 1, freezes: 0, resets: 150, resetsForMs: 5_000 }
const FULL: Size = {
  workers: 4,
  streams: 200,
  sessions: 50,
  deaths: 15,
  freezes: 3,
  resets: 1_000,
  resetsForMs: 15_000,
}

const AWAY_MS = 5_000
const FROZEN_MS = 20_000
/** By then a stream continues without a gap or has ended: streams outlast 10 s without Redis, and its loss is noticed within 1.5 s. */
const ENDED_WITHIN_MS = 12_000
const REFUSED_MS = 1_200
const NORMAL_MS = 3_000
const OUTLAST_MS = 3_000
const STREAMS_END_WITHIN_MS = 30_000
const READ_AGAIN = 20

/** Kills, freezes and empties Redis, and resets connections to it. */
export const redisDies: Scenario = {
  id: 'P3',
  promise: 'streams and sessions survive when Redis dies, freezes or loses its data, and when connections to it break',
  run: measure,
}

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await using world = await World.open({ random, workers: size.workers, hasProxies: true })
  const outages: OutageResult[] = []
  for (let n = 0; n < size.deaths + size.freezes; n++) {
    const fault = n < size.deaths ? death(world) : freeze(world)
    const outcome = await measureOutage(world, size, fault)
    outages.push(outcome)
    world.endRound()
    say(`${fault.what}: ${tally(outcome.ends)}`)
  }
  const broken = await breakConnections(world, size, random)
  say(`${broken.resets} connections reset, and one FLUSHALL: ${tally(broken.ends)}, ${broken.resumed} resumed`)
  return [...outageGuarantees(outages), ...brokenConnectionGuarantees(broken), noViolations(world.check())]
}

type Fault = { what: string; forMs: number; inject(): Promise<void>; heal(): Promise<void> }

const death = (world: World): Fault => ({
  what: `Redis killed for ${AWAY_MS} ms`,
  forMs: AWAY_MS,
  inject: () => world.killRedis(),
  heal: () => world.redis.restart(),
})

const freeze = (world: World): Fault => ({
  what: `Redis frozen for ${FROZEN_MS} ms`,
  forMs: FROZEN_MS,
  inject: () => world.redis.kill('SIGSTOP'),
  heal: () => world.redis.kill('SIGCONT'),
})

type OutageResult = {
  outage: Outage
  ends: (Ended | undefined)[]
  newWork: ReturnType<typeof assessOutage>
  sessions: { found: number; of: number }
}

async function measureOutage(world: World, size: Size, { forMs, inject, heal }: Fault): Promise<OutageResult> {
  const count = Math.ceil((forMs + OUTLAST_MS) / 100)
  const streams = await openRuns(world, size.streams, () => paced({ count, everyMs: 100 }))
  const sessions = await createSessions(world, size.sessions)
  const prober = new SessionProber(world)
  await sleep(300)
  const from = now()
  await inject()
  await sleep(forMs)
  await heal()
  const outage = { from, to: now() }
  await sleep(NORMAL_MS)
  const found = await countSessions(world, sessions)
  const probes = await prober.stop()
  const ends = await endsOf(streams, STREAMS_END_WITHIN_MS)
  await readAgain(world, streams.filter((_, n) => describeEnd(ends[n]) === 'done').slice(0, READ_AGAIN))
  return { outage, ends, newWork: assessOutage(probes, outage), sessions: { found, of: sessions.length } }
}

/** `resumed`: streams that ended with `stream_gap` or `relay_unavailable` and were resumed. */
type Broken = { resets: number; ends: Ended[]; resumed: number; sessions: { found: number; of: number } }

async function breakConnections(world: World, size: Size, random: Random): Promise<Broken> {
  const count = Math.ceil((size.resetsForMs + 2 * OUTLAST_MS) / 100)
  const streams = await openRuns(world, size.streams, () => paced({ count, everyMs: 100 }))
  const sessions = await createSessions(world, size.sessions)
  const following = streams.map((stream, n) => follow(world, stream, { random: random.fork(`stream ${n}`) }))
  const proxies = [...world.gateways, ...world.workers].flatMap(({ proxy }) => (proxy ? [proxy] : []))
  let resets = 0
  for (let n = 0; n < size.resets; n++) {
    resets += random.pick(proxies).reset('one', random.chance(0.5) ? 0 : 4096)
    await sleep(size.resetsForMs / size.resets)
  }
  await sleep(OUTLAST_MS / 3)
  await world.redis.flush()
  await sleep(NORMAL_MS)
  const found = await countSessions(world, sessions)
  const followed = await Promise.all(following)
  const ends = followed.map(({ end }) => end)
  await readAgain(world, streams.slice(0, READ_AGAIN))
  const resumed = followed.filter(({ resumes }) => resumes > 0).length
  return { resets, ends, resumed, sessions: { found, of: sessions.length } }
}

function outageGuarantees(outages: readonly OutageResult[]): Guarantee[] {
  const ends = outages.flatMap((each) => each.ends)
  const late = outages.flatMap(({ outage, ends: all }) => all.filter((ended) => !hasEndedInTime(ended, outage)))
  const wrong = outages.flatMap(({ newWork }) => newWork.wrong)
  const refused = outages.flatMap(({ newWork }) => newWork.refusedInMs)
  const normal = outages.map(({ newWork }) => newWork.normalAfterMs ?? Number.POSITIVE_INFINITY)
  return [
    none('streams neither done nor ended with an error within 12 s', late.length, `of ${ends.length}: ${tally(ends)}`),
    none('new work not answered 503 during the outage', wrong.length, JSON.stringify(wrong[0] ?? '')),
    slowest('time to the refusal of new work, longest', refused, REFUSED_MS),
    slowest('from the end of the outage to normal service, longest', normal, NORMAL_MS),
    sessionsGuarantee(outages.map(({ sessions }) => sessions)),
  ]
}

const hasEndedInTime = (ended: Ended | undefined, { from }: Outage): boolean =>
  ended?.terminal !== undefined && (ended.terminal.event === 'done' || ended.terminal.t - from <= ENDED_WITHIN_MS)

function brokenConnectionGuarantees({ ends, sessions }: Broken): Guarantee[] {
  const done = ends.filter((ended) => describeEnd(ended) === 'done')
  return [allOf('streams done over broken connections', done.length, ends.length), sessionsGuarantee([sessions])]
}

const sessionsGuarantee = (all: readonly { found: number; of: number }[]): Guarantee =>
  allOf(
    'sessions that exist afterwards',
    all.reduce((sum, { found }) => sum + found, 0),
    all.reduce((sum, { of }) => sum + of, 0),
  )
