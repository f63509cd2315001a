import { setTimeout as sleep } from 'node:timers/promises'
import { allOf, type Guarantee, none, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { noViolations } from '../checker.ts'
import { type Followed, follow } from '../follow.ts'
import { describeEnd, tally } from '../load.ts'
import { paced } from '../prompts.ts'
import { SessionClient } from '../session-client.ts'
import { createSessions, gatewayFor } from '../sessions.ts'
import type { Ended } from '../stream-client.ts'
import { World } from '../world.ts'

type Size = { workers: number; rounds: number; sessions: number; longRuns: number; drainSecs: number }

const SHORT: Size = { workers: 2, rounds: 1, sessions: 5, longRuns: 3, drainSecs: 3 }
const FULL: Size = { workers: 4, rounds: 10, sessions: 60, longRuns: 40, drainSecs: 6 }

/** A run longer than the drain time. */
const LONG = paced({ count: 150, everyMs: 200 })
const CLOSE_MS = 10_000
/** How long clients still use a draining process, as a load balancer does until its next readiness check. */
const NOTICED_MS = 250
const ASK_EVERY_MS = 100
/** Limit for an answer, which waits while its session is handed over. */
const ANSWER_MS = 5_000

/** Restarts every process in turn under load. */
export const rollingRestart: Scenario = {
  id: 'P8',
  promise: 'a rolling restart of all processes fails no request and loses no session',
  isFullOnly: true, // In the short form it is deploy/rolling.test.ts, and the roll of P23.
  run: measure,
}

type Exit = { name: string; ms: number; code: number | null }

async function measure({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await using world = await World.open({ random, workers: size.workers, env: { DRAIN_SECS: String(size.drainSecs) } })
  const ids = await createSessions(world, size.sessions)
  const stop = new AbortController()
  const clients = ids.map((id) => new SessionClient(world, id, random.fork(id)))
  const sessions = Promise.all(clients.map((client) => client.run(stop.signal)))
  const long = Array.from({ length: size.longRuns }, (_, n) =>
    startLongRuns(world, random.fork(`long ${n}`), stop.signal),
  )
  const asking = requestSessions(world, { ids, random: random.fork('asking'), signal: stop.signal })
  const exits: Exit[] = []
  for (let round = 0; round < size.rounds; round++) exits.push(...(await restartAll(world, size)))
  stop.abort()
  await sessions
  const ended = (await Promise.all(long)).flat()
  say(`restarted ${exits.map(({ name, ms }) => `${name} in ${(ms / 1000).toFixed(1)} s`).join(', ')}`)
  say(
    `messages: ${sumOf(clients, 'done')} done, ${sumOf(clients, 'cut')} cut, ${sumOf(clients, 'resumes')} resumed, ${sumOf(clients, 'retries')} sent again`,
  )
  say(
    `long runs: ${tally(ended.map(({ end }) => end))}; ${ended.reduce((sum, { resumes }) => sum + resumes, 0)} resumed`,
  )
  return [
    ...exitGuarantees(exits, size),
    ...(await clientGuarantees(world, clients)),
    longRunGuarantee(ended.map(({ end }) => end)),
    ...requestGuarantees(await asking),
    noViolations(world.check()),
  ]
}

const sumOf = (clients: readonly SessionClient[], what: 'done' | 'cut' | 'resumes' | 'retries') =>
  clients.reduce((sum, client) => sum + client[what], 0)

/** Stops each process and starts its replacement at the same time. */
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

/** Starts and follows runs that outlast their processes, one after the other, until the signal is aborted. */
async function startLongRuns(world: World, random: Random, signal: AbortSignal): Promise<Followed[]> {
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
type Asked = { ms: number[]; statuses: number[]; redirected: number }

/** Requests sessions until the signal is aborted. Where a gateway refuses the connection, tries the next, as a load balancer does. */
async function requestSessions(world: World, { ids, random, signal }: Asking): Promise<Asked> {
  const asked: Asked = { ms: [], statuses: [], redirected: 0 }
  const ask = async () => {
    const path = `/sessions/${random.pick(ids)}`
    for (const gateway of random.shuffle(world.gateways)) {
      const { status, ms } = await world.ask(gateway, { path })
      if (status === 0) {
        asked.redirected++
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

function exitGuarantees(exits: readonly Exit[], { drainSecs }: Size): Guarantee[] {
  return [
    allOf('processes that ended with code 0', exits.filter(({ code }) => code === 0).length, exits.length),
    slowest(
      'from SIGTERM to the exit, longest',
      exits.map(({ ms }) => ms),
      drainSecs * 1000 + CLOSE_MS,
    ),
  ]
}

async function clientGuarantees(world: World, clients: readonly SessionClient[]): Promise<Guarantee[]> {
  const failures = clients.flatMap(({ failures: all }) => all)
  const looks = await Promise.all(
    clients.map(async (client, n) => {
      const { status, body } = await world.ask(gatewayFor(world, n), { path: `/sessions/${client.session}` })
      const { message_count: count = -1 } = (body ?? {}) as { message_count?: number }
      return { status, isRight: count === client.messages, what: `${count} messages instead of ${client.messages}` }
    }),
  )
  const found = looks.filter(({ status }) => status === 200)
  const wrong = found.filter(({ isRight }) => !isRight)
  return [
    none('messages that failed', failures.length, failures[0]),
    allOf('sessions that exist afterwards', found.length, clients.length),
    none('sessions with a wrong number of messages', wrong.length, wrong[0]?.what),
  ]
}

/** A cut run ends with `worker_draining`. The clients close the last ones. */
function longRunGuarantee(ends: readonly Ended[]): Guarantee {
  const odd = ends.filter((ended) => !['worker_draining', 'done', 'left'].includes(describeEnd(ended)))
  return none('long runs that ended otherwise than by worker_draining', odd.length, `of ${ends.length}: ${tally(ends)}`)
}

function requestGuarantees({ ms, statuses, redirected }: Asked): Guarantee[] {
  const failed = statuses.filter((status) => status !== 200)
  const detail = `of ${statuses.length}, ${redirected} times sent to the next gateway; ${[...new Set(failed)].join(', ')}`
  return [none('requests that failed', failed.length, detail), slowest('time to their answers, longest', ms, ANSWER_MS)]
}
