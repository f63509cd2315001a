import { Checker, type Violation } from './checker.ts'
import { Client } from './client.ts'
import { Faults } from './faults.ts'
import { Fleet } from './fleet.ts'
import { patchNode } from './patch-node.ts'
import type { Plan } from './plan.ts'
import { Random } from './random.ts'
import { Time } from './time.ts'

const CLIENTS_BEGIN_MS = 1_000
/** By then everybody has been answered. */
const QUIET_MS = 120_000
const CHECKS_MS = 30_000
/** How often it is asked whether everybody is done. */
const STEP_MS = 500

export type Outcome = {
  seed: number
  violation: Violation | undefined
  story: readonly string[]
  turns: number
  hasMovedRun: boolean
}

/** Lives through a plan, and returns what was found. `isDetailed`: the story says at each moment where the sessions are. */
export async function simulate(plan: Plan, { isDetailed = false } = {}): Promise<Outcome> {
  const time = new Time(new Random(plan.seed))
  const checker = new Checker(() => time.nowMs)
  const restore = patchNode(time)
  const onThrown = (cause: unknown) =>
    checker.violate('nothing throws without a catch', String(cause instanceof Error ? cause.stack : cause))
  process.on('unhandledRejection', onThrown)
  process.on('uncaughtException', onThrown)
  try {
    await live(plan, { time, checker, isDetailed })
  } finally {
    process.off('unhandledRejection', onThrown)
    process.off('uncaughtException', onThrown)
    time.end()
    restore()
  }
  const { violation, story, hasMovedRun } = checker
  return { seed: plan.seed, violation, story, turns: time.turns, hasMovedRun }
}

type Life = { time: Time; checker: Checker; isDetailed: boolean }

async function live(plan: Plan, { time, checker, isDetailed }: Life): Promise<void> {
  const fleet = new Fleet(time, checker, plan)
  for (let i = 0; i < plan.gateways; i++) fleet.addGateway()
  for (let i = 0; i < plan.workers; i++) fleet.addWorker()
  const clients = plan.clients.map((steps, i) => new Client(`c${i + 1}`, steps, { time, checker, fleet }))
  for (const client of clients) time.after(client.owner, CLIENTS_BEGIN_MS, () => void client.live())
  const faults = new Faults({ time, fleet, checker })
  for (const fault of plan.faults) faults.schedule(fault)
  const lastFaultMs = Math.max(0, ...plan.faults.map((fault) => fault.at + ('forMs' in fault ? fault.forMs : 0)))

  const look = () => {
    if (isDetailed) fleet.tellSessions()
    fleet.look()
  }
  const until = async (untilMs: number, isOver: () => boolean) => {
    while (time.nowMs < untilMs && !isOver() && !checker.violation) {
      await time.run(Math.min(untilMs, time.nowMs + STEP_MS), look)
    }
  }
  await until(lastFaultMs + QUIET_MS, () => clients.every(({ isDone }) => isDone) && time.nowMs > lastFaultMs)
  if (checker.violation) return
  checker.say('all clients look at what they have')
  for (const client of clients) time.after(client.owner, 0, () => void client.check())
  await until(time.nowMs + CHECKS_MS, () => clients.every(({ isChecked }) => isChecked))
  checker.atEnd()
}
