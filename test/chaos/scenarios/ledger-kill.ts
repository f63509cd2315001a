import { type MongoSet, startMongoSet } from '../../../scripts/local-services/mongo.ts'
import { ensureMongod } from '../../../scripts/local-services/mongo-server.ts'
import type { Guarantee } from '../../harness/guarantee.ts'
import type { Random } from '../../harness/seed.ts'
import { check } from '../checker.ts'
import { violations } from '../figures.ts'
import { now } from '../history.ts'
import type { Scenario, ScenarioOptions } from '../scenario.ts'
import { gatewayFor } from '../sessions.ts'
import { World } from '../world.ts'
import { CustomerLoad, type Door, type LoadSize } from './ledger/customer-load.ts'
import { Engine } from './ledger/engine.ts'
import { describe, judge, settle } from './ledger/judge.ts'

type Size = { runs: number; engineKills: number; workerKills: number; primaryKills: number }

const SHORT: Size = { runs: 200, engineKills: 3, workerKills: 1, primaryKills: 1 }
const FULL: Size = { runs: 1_000, engineKills: 10, workerKills: 4, primaryKills: 4 }

/** Runs end at all times: some are always being recorded. */
const QUICK = { atOnce: 40, customers: 12, maxMs: 400 }
/** An election takes two seconds: of those that run when it begins, most end meanwhile. */
const SLOW = { atOnce: 80, customers: 12, maxMs: 2_000 }
const MEMBERS = 3

/** Engine, worker and primary are killed, each by itself, while customers' runs are recorded. */
export const ledgerKill: Scenario = {
  id: 'P5',
  promise: 'done of a customer’s run means recorded, once, whoever is killed',
  run,
}

async function run({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await ensureMongod(say)
  const options = { size, random, say }
  const promised = await Promise.all([breakStandalone(options), breakCluster(options)])
  return promised.flat()
}

type Breaking = { size: Size; random: Random; say: (line: string) => void }

async function breakStandalone({ size, random, say }: Breaking): Promise<Guarantee[]> {
  await using engine = new Engine()
  await engine.start()
  const restart = async () => {
    await engine.kill()
    await engine.start()
  }
  const load = loadOf('engine killed', { door: engine, size: { ...QUICK, runs: size.runs }, random })
  await strike(load, size.engineKills, restart)
  const outcome = await settle(load, engine.url, engine.history)
  say(describe(outcome))
  return [...judge(outcome), violations(check(engine.history))]
}

async function breakCluster({ size, random, say }: Breaking): Promise<Guarantee[]> {
  await using set = await startMongoSet(MEMBERS)
  await using world = await World.open({ random, workers: 3, env: { MONGODB_URL: set.url } })
  const door = doorOf(world)
  const byWorker = loadOf('worker killed', { door, size: { ...QUICK, runs: size.runs }, random })
  await strike(byWorker, size.workerKills, () => replace(world, random))
  const byPrimary = loadOf('primary killed', { door, size: { ...SLOW, runs: size.runs }, random })
  await strike(byPrimary, size.primaryKills, () => killPrimary(world, set))
  await set.settled()
  const { url } = gatewayFor(world, 0)
  const outcomes = [await settle(byWorker, url, world.history), await settle(byPrimary, url, world.history)]
  for (const outcome of outcomes) say(describe(outcome))
  return [...outcomes.flatMap(judge), violations(world.check())]
}

const loadOf = (name: string, { door, size, random }: { door: Door; size: LoadSize; random: Random }) =>
  new CustomerLoad(name.replaceAll(' ', '-'), { door, size, random: random.fork(name) })

const doorOf = (world: World): Door => ({
  history: world.history,
  open(n, { customer, prompt }) {
    const body = { prompt, customer_id: customer }
    return world.stream(gatewayFor(world, n), { path: '/agent/run', body, customer })
  },
})

/** Strikes evenly over the load. */
async function strike(load: CustomerLoad, times: number, once: () => Promise<void>): Promise<void> {
  const running = load.run()
  for (let n = 1; n <= times; n++) {
    await load.reached(n / (times + 1))
    await once()
  }
  await running
}

async function replace(world: World, random: Random): Promise<void> {
  await world.kill(random.pick(world.workers))
  await world.start('worker')
}

/** The set goes on with the two others until it is back. */
async function killPrimary(world: World, set: MongoSet): Promise<void> {
  const primary = await set.primary()
  world.record({ kind: 'killed', t: now(), what: 'mongod', signal: 'SIGKILL' })
  await primary.kill('SIGKILL')
  await set.primary()
  await primary.restart()
}
