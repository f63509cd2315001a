import { setTimeout as sleep } from 'node:timers/promises'
import type { Guarantee } from '../../harness/guarantee.ts'
import type { Random } from '../../harness/seed.ts'
import { allOf, none, slowest, violations } from '../figures.ts'
import { type Followed, follow } from '../follow.ts'
import { tally, wordsFor } from '../load.ts'
import { paced } from '../prompts.ts'
import type { Scenario, ScenarioOptions } from '../scenario.ts'
import { createSessions, gatewayFor } from '../sessions.ts'
import type { Ended } from '../stream-client.ts'
import { Talker } from '../talker.ts'
import { World } from '../world.ts'

type Size = { rounds: number; sessions: number; longRuns: number; drainSecs: number }

const SHORT: Size = { rounds: 1, sessions: 24, longRuns: 16, drainSecs: 3 }
const FULL: Size = { rounds: 10, sessions: 60, longRuns: 40, drainSecs: 6 }

/** Longer than any process drains. */
const LONG = paced({ count: 150, everyMs: 200 })
const CLOSE_MS = 10_000
/** How long a load balancer goes on choosing a process that has said it is not ready: within its grace. */
const NOTICED_MS = 250
const ASK_EVERY_MS = 100
/** A session that is being handed over answers when it has arrived. */
const ANSWER_MS = 5_000

/** Every process is restarted in turn, while clients talk to it. */
export const rollingRestart: Scenario = {
  id: 'P8',
  promise: 'a rolling restart of everything fails no request and loses no session',
  run: measure,
}

type Exit = { name: string; ms: number; code: number | null }

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await using world = await World.open({ random, env: { DRAIN_SECS: String(size.drainSecs) } })
  const ids = await createSessions(world, size.sessions)
  const stop = new AbortController()
  const talkers = ids.map((id) => new Talker(world, id, random.fork(id)))
  const talking = Promise.all(talkers.map((talker) => talker.talk(stop.signal)))
  const long = Array.from({ length: size.longRuns }, (_, n) => runOn(world, random.fork(`long ${n}`), stop.signal))
  const asking = askOn(world, { ids, random: random.fork('asking'), signal: stop.signal })
  const exits: Exit[] = []
  for (let round = 0; round < size.rounds; round++) exits.push(...(await restartAll(world, size)))
  stop.abort()
  await talking
  const ended = (await Promise.all(long)).flat()
  say(`restarted ${exits.map(({ name, ms }) => `${name} in ${(ms / 1000).toFixed(1)} s`).join(', ')}`)
  say(
    `messages: ${sumOf(talkers, 'done')} done, ${sumOf(talkers, 'cut')} cut, ${sumOf(talkers, 'cameBack')} came back, ${sumOf(talkers, 'again')} sent again`,
  )
  say(
    `long runs: ${tally(ended.map(({ end }) => end))}; ${ended.reduce((sum, { cameBack }) => sum + cameBack, 0)} came back`,
  )
  return [
    ...judgeExits(exits, size),
    ...(await judgeClients(world, talkers)),
    judgeLong(ended.map(({ end }) => end)),
    ...judgeAsked(await asking),
    violations(world.check()),
  ]
}

const sumOf = (talkers: readonly Talker[], what: 'done' | 'cut' | 'cameBack' | 'again') =>
  talkers.reduce((sum, talker) => sum + talker[what], 0)

/** One goes and another comes, each at the same time. */
async function restartAll(world: World, { drainSecs }: Size): Promise<Exit[]> {
  const exits: Exit[] = []
  for (const member of [...world.gateways, ...world.workers]) {
    const withinMs = drainSecs * 1000 + CLOSE_MS
    const [exit] = await Promise.all([
      world.stop(member, { withinMs, noticedAfterMs: NOTICED_MS }),
      world.start(member.role),
    ])
    exits.push({ name: member.name, ...exit })
  }
  return exits
}

/** Has a run that is longer than its processes live, one after the other. */
async function runOn(world: World, random: Random, signal: AbortSignal): Promise<Followed[]> {
  const ends: Followed[] = []
  while (!signal.aborted) {
    const first = world.run(random.pick(world.gateways), { prompt: LONG })
    const followed = await follow(world, first, { random, signal })
    if (first.isRefused) await sleep(ASK_EVERY_MS)
    else ends.push(followed)
  }
  return ends
}

type Asking = { ids: readonly string[]; random: Random; signal: AbortSignal }
type Asked = { ms: number[]; statuses: number[]; turnedAway: number }

/** Asks for sessions all the time. Where nobody listens the next gateway is asked, as a load balancer does. */
async function askOn(world: World, { ids, random, signal }: Asking): Promise<Asked> {
  const asked: Asked = { ms: [], statuses: [], turnedAway: 0 }
  const ask = async () => {
    const path = `/sessions/${random.pick(ids)}`
    for (const gateway of random.shuffle(world.gateways)) {
      const { status, ms } = await world.ask(gateway, { path })
      if (status === 0) {
        asked.turnedAway++
        continue
      }
      asked.statuses.push(status)
      asked.ms.push(ms)
      return
    }
    asked.statuses.push(0)
  }
  const asking = new Set<Promise<void>>()
  while (!signal.aborted) {
    const one = ask().finally(() => asking.delete(one))
    asking.add(one)
    await sleep(ASK_EVERY_MS)
  }
  await Promise.all(asking)
  return asked
}

function judgeExits(exits: readonly Exit[], { drainSecs }: Size): Guarantee[] {
  return [
    allOf('processes ended with code 0', exits.filter(({ code }) => code === 0).length, exits.length),
    slowest(
      'from SIGTERM to the exit, longest',
      exits.map(({ ms }) => ms),
      drainSecs * 1000 + CLOSE_MS,
    ),
  ]
}

async function judgeClients(world: World, talkers: readonly Talker[]): Promise<Guarantee[]> {
  const failures = talkers.flatMap(({ failures: all }) => all)
  const looks = await Promise.all(
    talkers.map(async (talker, n) => {
      const { status, body } = await world.ask(gatewayFor(world, n), { path: `/sessions/${talker.session}` })
      const { message_count: count = -1 } = (body ?? {}) as { message_count?: number }
      return { status, isWhole: count === talker.messages, what: `${count} messages, not ${talker.messages}` }
    }),
  )
  const there = looks.filter(({ status }) => status === 200)
  const torn = there.filter(({ isWhole }) => !isWhole)
  return [
    none('messages that failed', failures.length, failures[0]),
    allOf('sessions there afterwards', there.length, talkers.length),
    none('sessions whose conversation is another', torn.length, torn[0]?.what),
  ]
}

/** What is cut says so; the last ones are left by their clients. */
function judgeLong(ends: readonly Ended[]): Guarantee {
  const odd = ends.filter((ended) => !['worker_draining', 'done', 'left'].includes(wordsFor(ended)))
  return none('long runs ended otherwise than by worker_draining', odd.length, `of ${ends.length}: ${tally(ends)}`)
}

function judgeAsked({ ms, statuses, turnedAway }: Asked): Guarantee[] {
  const failed = statuses.filter((status) => status !== 200)
  const detail = `of ${statuses.length}, ${turnedAway} times sent on to the next gateway; ${[...new Set(failed)].join(', ')}`
  return [
    none('requests that failed', failed.length, detail),
    slowest('until they were answered, longest', ms, ANSWER_MS),
  ]
}
