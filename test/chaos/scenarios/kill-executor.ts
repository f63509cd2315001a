import { setTimeout as sleep } from 'node:timers/promises'
import { ensureMongod } from '../../../scripts/local-services/mongo-server.ts'
import { allOf, type Guarantee, none, noneOf } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { noViolations } from '../checker.ts'
import { now, ofKind } from '../history.ts'
import { describeEnd } from '../load.ts'
import { SessionClient } from '../session-client.ts'
import { createSessions, gatewayFor } from '../sessions.ts'
import { type Member, World } from '../world.ts'
import type { Fault } from './fault.ts'
import { flowGuarantees, tallyAnswers } from './flows/judge.ts'
import { FlowLoad, type FlowLoadSize } from './flows/load.ts'
import { EchoModel } from './flows/model.ts'
import { readRecords } from './flows/records.ts'
import { flowSettings, prepareFlow } from './flows/setup.ts'
import { restartStandalone } from './flows/standalone.ts'

type Size = FlowLoadSize & { rounds: number; sessions: number; restarts: number }

const SHORT: Size = { callers: 3, maxMs: 1_500, rounds: 1, sessions: 2, restarts: 1 }
const FULL: Size = { callers: 40, maxMs: 2_500, rounds: 10, sessions: 10, restarts: 6 }

const DRAIN_SECS = 5
const STOP_WITHIN_MS = 15_000
const NOTICED_MS = 250
const REDIS_AWAY_MS = 3_000
/** A job of a dead executor is handed out again within 16 s at the latest, and one that nobody takes is given up after 30 s. */
const ENDED_WITHIN_MS = 40_000

/** Kills, freezes and drains executors while flows run, and then a gateway, Redis and the standalone form. */
export const killExecutor: Scenario = {
  id: 'P19',
  promise: 'every call of a flow is answered, as its record says, and no key is served twice, whatever is killed',
  run,
}

async function run(options: ScenarioOptions): Promise<Guarantee[]> {
  const size = options.isFull ? FULL : SHORT
  await ensureMongod(options.say)
  const guarantees = await Promise.all([breakCluster(options, size), restartStandalone(options, size.restarts)])
  return guarantees.flat()
}

async function breakCluster({ random, say }: ScenarioOptions, size: Size): Promise<Guarantee[]> {
  await using mongo = await startMongoInMemory()
  await using model = await EchoModel.start()
  const env = { ...flowSettings(), MONGODB_URL: mongo.url, DRAIN_SECS: String(DRAIN_SECS) }
  await using world = await World.open({ random, gateways: 2, workers: 1, executors: 2, env })
  await prepareFlow(
    world.gateways.map(({ url }) => url),
    model.url,
  )
  const faults: Fault[] = []
  const load = new FlowLoad(world, size, random.fork('load'))
  const stop = new AbortController()
  const calling = load.run(stop.signal)
  const agents: Agents[] = []
  for (let n = 0; n < size.rounds; n++) {
    const ofRound = random.fork(`round ${n}`)
    agents.push(
      await besideAgents(world, { sessions: size.sessions, random: ofRound }, () =>
        breakExecutors(world, { random: ofRound, faults }),
      ),
    )
    await breakOthers(world, { random: ofRound, faults })
    say(`round ${n + 1}: ${tallyAnswers(load.answers)}`)
  }
  stop.abort()
  await calling
  const records = await readRecords(gatewayFor(world, 0).url, ENDED_WITHIN_MS)
  const killed = ofKind(world.history, 'killed')
  const isKilled = (what: string, from: number, to: number) =>
    killed.some((entry) => entry.what === what && entry.t >= from && entry.t <= to)
  return [
    ...flowGuarantees({ load, records, model, faults, isKilled }),
    ...agentGuarantees(agents),
    noViolations(world.check()),
  ]
}

type Breaking = { random: Random; faults: Fault[] }

/** A kill, a long and a short freeze, and a drain. Another executor replaces one that has ended. */
async function breakExecutors(world: World, { random, faults }: Breaking): Promise<void> {
  const kinds = random.shuffle([
    kill,
    (member: Member) => freeze(member, random.between(5_000, 8_000)),
    freezeShortly,
    drain,
  ])
  for (const inject of kinds) {
    await sleep(random.between(500, 1_500))
    faults.push({ from: now(), until: now() })
    await inject(random.pick(world.executors), world)
  }
}

async function kill(member: Member, world: World): Promise<void> {
  await world.kill(member)
  await world.start('executor')
}

async function freeze({ proc }: Member, forMs: number): Promise<void> {
  await proc.kill('SIGSTOP')
  await sleep(forMs)
  await proc.kill('SIGCONT')
}

const freezeShortly = (member: Member) => freeze(member, 2_500)

async function drain(member: Member, world: World): Promise<void> {
  await Promise.all([
    world.stop(member, { withinMs: STOP_WITHIN_MS, noticedAfterMs: NOTICED_MS }),
    world.start('executor'),
  ])
}

/** Kills a gateway whose callers come back through the other one, and then Redis. */
async function breakOthers(world: World, { random, faults }: Breaking): Promise<void> {
  await world.kill(random.pick(world.gateways))
  await world.start('gateway')
  await sleep(random.between(500, 1_500))
  const away = { from: now(), until: now() }
  faults.push(away)
  await world.killRedis()
  await sleep(REDIS_AWAY_MS)
  await world.redis.restart()
  away.until = now()
  await sleep(REDIS_AWAY_MS)
}

/** The runs on the worker, which the faults of executors must not affect. */
type Agents = { done: number; runs: string[]; failures: string[] }

async function besideAgents(
  world: World,
  { sessions, random }: { sessions: number; random: Random },
  work: () => Promise<void>,
): Promise<Agents> {
  const stop = new AbortController()
  const ids = await createSessions(world, sessions)
  const clients = ids.map((id) => new SessionClient(world, id, random.fork(id)))
  const messages = clients.map((client) => client.run(stop.signal))
  const oneShot = runAgents(world, stop.signal)
  await work()
  stop.abort()
  await Promise.all(messages)
  const failures = clients.flatMap((client) => client.failures)
  return { done: clients.reduce((sum, client) => sum + client.done, 0), runs: await oneShot, failures }
}

/** One one-shot run after the other, and how each ended. */
async function runAgents(world: World, signal: AbortSignal): Promise<string[]> {
  const ends: string[] = []
  while (!signal.aborted) {
    const { ended } = world.run(gatewayFor(world, ends.length), { prompt: '/say a\n/sleep 300\n/say b' })
    ends.push(describeEnd(await ended))
  }
  return ends
}

function agentGuarantees(all: readonly Agents[]): Guarantee[] {
  const runs = all.flatMap((each) => each.runs)
  const messages = all.reduce((sum, { done }) => sum + done, 0)
  return [
    allOf(
      'one-shot runs beside faulty executors that are done',
      runs.filter((end) => end === 'done').length,
      runs.length,
    ),
    noneOf(
      `session messages of ${messages} that failed`,
      all.flatMap(({ failures }) => failures),
    ),
    none('rounds without a session message', all.filter(({ done }) => done === 0).length),
  ]
}
