import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import { now } from '../../history.ts'
import type { Member, World } from '../../world.ts'
import { Race, type Reply } from './race.ts'

/** The result of one race. `problem` says how it broke the promise. */
export type RaceResult = { resumedInMs: number; wasReplied: boolean; problem: string | undefined }

export type RaceKind = (world: World, random: Random) => Promise<RaceResult>

/** Sends two contradicting replies through two gateways at the same time. */
export const twoReplies: RaceKind = async (world, random) => {
  const { race, one, other } = await start(world, random)
  const isAllow = random.chance(0.5)
  const replies = await Promise.all([race.reply(one, isAllow), race.reply(other, !isAllow)])
  return finishRace({ race, replies, fair: ['200 409', '409 200', '404 404'], late: one })
}

/**
 * Sends one reply whose notification to the worker is dropped. On a busy machine the reply may come too late; then it must
 * be answered 404 like any other.
 */
export function replyWithoutNotification(drop: (request: string) => void): RaceKind {
  return async (world, random) => {
    const { race, one, other } = await start(world, random)
    drop(race.request)
    return finishRace({ race, replies: [await race.reply(one, random.chance(0.5))], fair: ['200', '404'], late: other })
  }
}

/**
 * Sends one reply at the moment of the timeout. The time is adjusted after each race, also for those that wait for theirs, so that half of the replies
 * win on any machine: the more in a row have won, or lost, the more.
 */
export function replyAtEdge(timeoutMs: number): RaceKind {
  let offsetMs = 0
  let streak = 0
  return async (world, random) => {
    const { race, one, other } = await start(world, random)
    await until(race.expiresAt - LATEST_CHANGE_MS)
    await until(race.expiresAt + offsetMs + random.between(-EDGE_MS, EDGE_MS))
    const reply = await race.reply(one, random.chance(0.5))
    const sign = reply.status === 200 ? 1 : -1
    streak = streak * sign > 0 ? streak + sign : sign
    offsetMs = Math.max(offsetMs + streak * STEP_MS, -timeoutMs / 2)
    return finishRace({ race, replies: [reply], fair: ['200', '404'], late: other })
  }
}

const until = (at: number) => sleep(Math.max(0, at - now()))

const EDGE_MS = 3
/** So long before its time a race takes what the others have found. */
const LATEST_CHANGE_MS = 300
const STEP_MS = 4

async function start(world: World, random: Random): Promise<{ race: Race; one: Member; other: Member }> {
  const [one, other] = random.shuffle(world.gateways)
  if (!one || !other) throw new Error('a race needs two gateways')
  return { race: await Race.start(world, random.pick([one, other])), one, other }
}

type Finishing = { race: Race; replies: readonly Reply[]; fair: readonly string[]; late: Member }

async function finishRace({ race, replies, fair, late }: Finishing): Promise<RaceResult> {
  const { isAllowed, hasActed, resumedInMs } = await race.outcome()
  const { status: lateStatus } = await race.reply(late, true)
  const wasReplied = replies.some(({ status }) => status === 200)
  return { resumedInMs, wasReplied, problem: problemOf({ replies, fair, isAllowed, hasActed, lateStatus }) }
}

export type RaceOutcome = {
  replies: readonly Reply[]
  /** The allowed combinations of the replies' statuses. */
  fair: readonly string[]
  /** Whether the engine allowed the call, by the tool's result; `hasActed`: by the tool's effect. */
  isAllowed: boolean
  hasActed: boolean
  lateStatus: number
}

/** How a race broke the promise, if it did: the engine must follow the reply answered 200, deny without one, and refuse a late reply. */
export function problemOf({ replies, fair, isAllowed, hasActed, lateStatus }: RaceOutcome): string | undefined {
  const answered = replies.map(({ status }) => status).join(' ')
  const winner = replies.find(({ status }) => status === 200)
  const isWanted = winner?.isAllow ?? false
  const problems = [
    !fair.includes(answered) && `answered ${answered}`,
    isAllowed !== isWanted && `answered ${answered}, and the tool's result is ${isAllowed ? 'good' : 'a refusal'}`,
    hasActed !== isWanted && `answered ${answered}, and the tool ${hasActed ? 'acted' : 'did not act'}`,
    lateStatus !== (winner ? 409 : 404) && `answered ${answered}, and a late reply ${lateStatus}`,
  ]
  return problems.find((problem) => problem !== false)
}
