import { setTimeout as sleep } from 'node:timers/promises'
import { ensureMongod } from '../../../scripts/local-services/mongo-server.ts'
import type { Guarantee } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { noViolations } from '../checker.ts'
import { type Member, World } from '../world.ts'
import type { Fault } from './fault.ts'
import { cutSteps, planGuarantees, stallsBefore, tallyPlans } from './plans/judge.ts'
import { PlanLoad } from './plans/load.ts'
import { StepModel } from './plans/model.ts'
import { killStandalone } from './plans/standalone.ts'

/**
 * A point is a step that a fault cuts off. Rounds are added until there are enough points. The standalone form is killed in the full form alone:
 * test/e2e/plans/restart.test.ts has its short one.
 */
type Size = { gateways: number; clients: number; points: number; maxRounds: number; restarts: number }

const SHORT: Size = { gateways: 1, clients: 5, points: 2, maxRounds: 4, restarts: 0 }
const FULL: Size = { gateways: 2, clients: 40, points: 300, maxRounds: 30, restarts: 20 }

/** Kills and freezes executors while plans run, and then the standalone form. */
export const killPlanExecutor: Scenario = {
  id: 'P7',
  promise: 'a step of a plan is executed at most once, and every plan ends, whichever executor is killed or frozen',
  run,
}

async function run(options: ScenarioOptions): Promise<Guarantee[]> {
  const size = options.isFull ? FULL : SHORT
  await ensureMongod(options.say)
  const { restarts } = size
  const guarantees = [breakCluster(options, size), ...(restarts > 0 ? [killStandalone(options, restarts)] : [])]
  return (await Promise.all(guarantees)).flat()
}

async function breakCluster({ random, say }: ScenarioOptions, size: Size): Promise<Guarantee[]> {
  await using mongo = await startMongoInMemory()
  await using model = await StepModel.start()
  const env = { ...model.env, MONGODB_URL: mongo.url }
  const faults: Fault[] = []
  const stalls: Fault[] = []
  const onOutput = (text: string) => {
    if (EVICTED.test(text)) stalls.push(...stallsBefore(Date.now(), faults))
  }
  await using world = await World.open({ random, gateways: size.gateways, workers: 0, executors: 2, env, onOutput })
  const urlOf = (ofRequest: Random) => ofRequest.pick(world.gateways).url
  const load = new PlanLoad(urlOf, { name: 'plan', random: random.fork('load') })
  const stop = new AbortController()
  const running = load.run(size.clients, stop.signal)
  for (let n = 1; n <= size.maxRounds && cutSteps({ load, model }) < size.points; n++) {
    await breakExecutors(world, random.fork(`round ${n}`), faults)
    say(`round ${n}: ${cutSteps({ load, model })} steps cut off; ${tallyPlans(load)}`)
  }
  stop.abort()
  await running
  say(
    `at the end: ${cutSteps({ load, model })} steps cut off by ${faults.length} faults and ${stalls.length} stalls; ${tallyPlans(load)}`,
  )
  return [...planGuarantees({ load, model, faults: [...faults, ...stalls] }, size.points), noViolations(world.check())]
}

/** The log line of an executor that finds that its lease has ended. */
const EVICTED = /"msg":"this process was evicted/

/** Two kills and a freeze in a random order. Another executor replaces one that was killed. */
async function breakExecutors(world: World, random: Random, faults: Fault[]): Promise<void> {
  for (const inject of random.shuffle([kill, freeze, kill])) {
    await sleep(random.between(500, 2_000))
    const fault = { from: Date.now(), until: inject === freeze ? Infinity : Date.now() }
    faults.push(fault)
    await inject(world, random)
    if (inject === freeze) fault.until = Date.now()
  }
}

/** The executor that has run the longest has plans to lose. */
function oldest({ executors: [executor] }: World): Member {
  if (!executor) throw new Error('there is no executor')
  return executor
}

async function kill(world: World): Promise<void> {
  await world.kill(oldest(world))
  await world.start('executor')
}

async function freeze(world: World, random: Random): Promise<void> {
  const { proc } = oldest(world)
  await proc.kill('SIGSTOP')
  await sleep(random.between(5_000, 8_000))
  await proc.kill('SIGCONT')
}
