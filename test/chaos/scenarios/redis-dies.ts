import { setTimeout as sleep } from 'node:timers/promises'
import type { Guarantee } from '../../harness/guarantee.ts'
import type { Random } from '../../harness/seed.ts'
import { allOf, none, slowest, violations } from '../figures.ts'
import { follow } from '../follow.ts'
import { now } from '../history.ts'
import { endsOf, openRuns, readAgain, tally, wordsFor } from '../load.ts'
import { judgeOutage, type Outage, Prober } from '../prober.ts'
import { paced } from '../prompts.ts'
import type { Scenario, ScenarioOptions } from '../scenario.ts'
import { createSessions, sessionsThere } from '../sessions.ts'
import type { Ended } from '../stream-client.ts'
import { World } from '../world.ts'

type Size = { streams: number; sessions: number; deaths: number; freezes: number; resets: number; resetsForMs: number }

const SHORT: Size = { streams: 100, sessions: 20, deaths: 1, freezes: 0, resets: 300, resetsForMs: 5_000 }
const FULL: Size = { streams: 200, sessions: 50, deaths: 15, freezes: 3, resets: 1_000, resetsForMs: 15_000 }

const AWAY_MS = 5_000
const FROZEN_MS = 20_000
/** A stream goes on without a gap, or has ended by then: 10 s away are to be survived (design §4), and are noticed within 1.5 s. */
const GIVEN_UP_MS = 12_000
const REFUSED_MS = 1_200
const NORMAL_MS = 3_000
const OUTLAST_MS = 3_000
const PATIENCE_MS = 30_000
const READ_AGAIN = 20

/** What connects everybody breaks in the ways it can. */
export const redisDies: Scenario = {
  id: 'P3',
  promise: 'Redis may die, freeze, or come back empty, and connections to it may break at any byte',
  run: measure,
}

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await using world = await World.open({ random, hasProxies: true })
  const survived: Survived[] = []
  for (let n = 0; n < size.deaths + size.freezes; n++) {
    const fault = n < size.deaths ? death(world) : freeze(world)
    const outcome = await survive(world, size, fault)
    survived.push(outcome)
    world.endRound()
    say(`${fault.what}: ${tally(outcome.ends)}`)
  }
  const broken = await breakConnections(world, size, random)
  say(`${broken.resets} connections reset, and one FLUSHALL: ${tally(broken.ends)}, ${broken.cameBack} came back`)
  return [...judgeOutages(survived), ...judgeBroken(broken), violations(world.check())]
}

type Fault = { what: string; forMs: number; take(): Promise<void>; give(): Promise<void> }

const death = (world: World): Fault => ({
  what: `Redis killed for ${AWAY_MS} ms`,
  forMs: AWAY_MS,
  take: () => world.killRedis(),
  give: () => world.redis.restart(),
})

const freeze = (world: World): Fault => ({
  what: `Redis frozen for ${FROZEN_MS} ms`,
  forMs: FROZEN_MS,
  take: () => world.redis.kill('SIGSTOP'),
  give: () => world.redis.kill('SIGCONT'),
})

type Survived = {
  outage: Outage
  ends: (Ended | undefined)[]
  fared: ReturnType<typeof judgeOutage>
  sessions: { there: number; of: number }
}

async function survive(world: World, size: Size, { forMs, take, give }: Fault): Promise<Survived> {
  const count = Math.ceil((forMs + OUTLAST_MS) / 100)
  const streams = await openRuns(world, size.streams, () => paced({ count, everyMs: 100 }))
  const sessions = await createSessions(world, size.sessions)
  const prober = new Prober(world)
  await sleep(300)
  const from = now()
  await take()
  await sleep(forMs)
  await give()
  const outage = { from, to: now() }
  await sleep(NORMAL_MS)
  const there = await sessionsThere(world, sessions)
  const probes = await prober.stop()
  const ends = await endsOf(streams, PATIENCE_MS)
  await readAgain(world, streams.filter((_, n) => wordsFor(ends[n]) === 'done').slice(0, READ_AGAIN))
  return { outage, ends, fared: judgeOutage(probes, outage), sessions: { there, of: sessions.length } }
}

/** `cameBack` streams were told that they have a gap, or lost the relay, and were taken up again. */
type Broken = { resets: number; ends: Ended[]; cameBack: number; sessions: { there: number; of: number } }

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
  await world.withRedis((redis) => redis.flushall())
  await sleep(NORMAL_MS)
  const there = await sessionsThere(world, sessions)
  const followed = await Promise.all(following)
  const ends = followed.map(({ end }) => end)
  await readAgain(world, streams.slice(0, READ_AGAIN))
  const cameBack = followed.filter((each) => each.cameBack > 0).length
  return { resets, ends, cameBack, sessions: { there, of: sessions.length } }
}

function judgeOutages(survived: readonly Survived[]): Guarantee[] {
  const ends = survived.flatMap((each) => each.ends)
  const late = survived.flatMap(({ outage, ends: all }) => all.filter((ended) => !isToldInTime(ended, outage)))
  const wrong = survived.flatMap(({ fared }) => fared.wrong)
  const refused = survived.flatMap(({ fared }) => fared.refusedInMs)
  const normal = survived.map(({ fared }) => fared.normalAfterMs ?? Number.POSITIVE_INFINITY)
  return [
    none('streams neither done nor told within 12 s', late.length, `of ${ends.length}: ${tally(ends)}`),
    none('new work answered other than 503 meanwhile', wrong.length, JSON.stringify(wrong[0] ?? '')),
    slowest('until new work was refused, longest', refused, REFUSED_MS),
    slowest('from its return to normal service, longest', normal, NORMAL_MS),
    sessionsKept(survived.map(({ sessions }) => sessions)),
  ]
}

const isToldInTime = (ended: Ended | undefined, { from }: Outage): boolean =>
  ended?.terminal !== undefined && (ended.terminal.event === 'done' || ended.terminal.t - from <= GIVEN_UP_MS)

function judgeBroken({ ends, sessions }: Broken): Guarantee[] {
  const done = ends.filter((ended) => wordsFor(ended) === 'done')
  return [allOf('streams done over broken connections', done.length, ends.length), sessionsKept([sessions])]
}

const sessionsKept = (all: readonly { there: number; of: number }[]): Guarantee =>
  allOf(
    'sessions there afterwards',
    all.reduce((sum, { there }) => sum + there, 0),
    all.reduce((sum, { of }) => sum + of, 0),
  )
