import type { MongoSet } from '../../../scripts/local-services/mongo.ts'
import { ensureMongod } from '../../../scripts/local-services/mongo-server.ts'
import type { Guarantee } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { check, noViolations } from '../checker.ts'
import { now } from '../history.ts'
import { gatewayFor } from '../sessions.ts'
import { World } from '../world.ts'
import { CustomerLoad, type LoadSize, type RunOpener } from './ledger/customer-load.ts'
import { describeOutcome, guaranteesOf, readOutcome } from './ledger/outcome.ts'
import { Standalone } from './ledger/standalone.ts'

type Size = {
  gateways: number
  workers: number
  runs: number
  /** How many quick runs are under way at a time. Of slow ones there are twice as many. */
  atOnce: number
  engineKills: number
  workerKills: number
  primaryKills: number
}

const KILLS = {
  short: { engineKills: 1, workerKills: 1, primaryKills: 1 },
  full: { engineKills: 10, workerKills: 4, primaryKills: 4 },
}
const SHORT: Size = { gateways: 1, workers: 2, runs: 40, atOnce: 20, ...KILLS.short }
const FULL: Size = { gateways: 2, workers: 3, runs: 1_000, atOnce: 40, ...KILLS.full }

/** Short runs, so that some are being recorded at any time. */
const quick = ({ runs, atOnce }: Size): LoadSize => ({ runs, atOnce, customers: 12, maxMs: 400 })
/** An election takes two seconds, during which most of these runs end. */
const slow = ({ runs, atOnce }: Size): LoadSize => ({ runs, atOnce: 2 * atOnce, customers: 12, maxMs: 2_000 })
const MEMBERS = 3

/** Kills the standalone process, a worker and MongoDB's primary, one after the other, while customers' runs are recorded. */
export const ledgerKill: Scenario = {
  id: 'P5',
  promise: 'done of a customer’s run means that it is recorded once, whichever process is killed',
  run,
}

async function run({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await ensureMongod(say)
  const options = { size, random, say }
  const guarantees = await Promise.all([breakStandalone(options), breakCluster(options)])
  return guarantees.flat()
}

type Breaking = { size: Size; random: Random; say: (line: string) => void }

async function breakStandalone({ size, random, say }: Breaking): Promise<Guarantee[]> {
  await using standalone = new Standalone()
  await standalone.start()
  const restart = async () => {
    await standalone.kill()
    await standalone.start()
  }
  const load = loadOf('standalone killed', { opener: standalone, size: quick(size), random })
  await killDuring(load, size.engineKills, restart)
  const { url, history } = standalone
  const killsAlone = history.flatMap((entry) => (entry.kind === 'killed' ? [entry.t] : []))
  const outcome = await readOutcome(load, { url, history, killsAlone })
  say(describeOutcome(outcome))
  return [...guaranteesOf(outcome), noViolations(check(standalone.history))]
}

async function breakCluster({ size, random, say }: Breaking): Promise<Guarantee[]> {
  await using set = await startMongoInMemory(MEMBERS)
  await using world = await World.open({
    random,
    gateways: size.gateways,
    workers: size.workers,
    env: { MONGODB_URL: set.url },
  })
  const opener = openerOf(world)
  const byWorker = loadOf('worker killed', { opener, size: quick(size), random })
  await killDuring(byWorker, size.workerKills, () => replace(world, random))
  const byPrimary = loadOf('primary killed', { opener, size: slow(size), random })
  await killDuring(byPrimary, size.primaryKills, () => killPrimary(world, set))
  await set.settled()
  const { url } = gatewayFor(world, 0)
  const { history } = world
  const outcomes = [await readOutcome(byWorker, { url, history }), await readOutcome(byPrimary, { url, history })]
  for (const outcome of outcomes) say(describeOutcome(outcome))
  return [...outcomes.flatMap((outcome) => guaranteesOf(outcome)), noViolations(world.check())]
}

const loadOf = (name: string, { opener, size, random }: { opener: RunOpener; size: LoadSize; random: Random }) =>
  new CustomerLoad(name.replaceAll(' ', '-'), { opener, size, random: random.fork(name) })

const openerOf = (world: World): RunOpener => ({
  history: world.history,
  open(n, { customer, prompt }) {
    const body = { prompt, customer_id: customer }
    return world.stream(gatewayFor(world, n), { path: '/agent/run', body, customer })
  },
})

/** Calls `kill` `times` times, evenly distributed over the load. */
async function killDuring(load: CustomerLoad, times: number, kill: () => Promise<void>): Promise<void> {
  const killing = async () => {
    for (let n = 1; n <= times; n++) {
      await load.reached(n / (times + 1))
      await kill()
    }
  }
  await Promise.all([load.run(), killing()])
}

async function replace(world: World, random: Random): Promise<void> {
  await world.kill(random.pick(world.workers))
  await world.start('worker')
}

/** Kills the primary, waits for the election of another, and restarts it. */
async function killPrimary(world: World, set: MongoSet): Promise<void> {
  const primary = await set.primary()
  world.record({ kind: 'killed', t: now(), what: 'mongod', signal: 'SIGKILL' })
  await primary.kill('SIGKILL')
  await set.primary()
  await primary.restart()
}
