import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import { now } from '../../history.ts'
import type { Member, World } from '../../world.ts'
import { Race, type Reply } from './race.ts'

/** One race's end, and in what way it broke the promise, if it did. */
export type Raced = { resumedInMs: number; wasReplied: boolean; problem: string | undefined }

export type Kind = (world: World, random: Random) => Promise<Raced>

/** Two replies that contradict each other, through two gateways at once. */
export const twoReplies: Kind = async (world, random) => {
  const { race, one, other } = await start(world, random)
  const isAllow = random.chance(0.5)
  const replies = await Promise.all([race.reply(one, isAllow), race.reply(other, !isAllow)])
  return settle({ race, replies, fair: ['200 409', '409 200', '404 404'], late: one })
}

/**
 * One reply, whose request is told to `mute` before: of this decision the worker's bell will not ring. Where the machine is so
 * busy that the reply comes too late, it has to be told so like any other.
 */
export function replyWithoutBell(mute: (request: string) => void): Kind {
  return async (world, random) => {
    const { race, one, other } = await start(world, random)
    mute(race.request)
    return settle({ race, replies: [await race.reply(one, random.chance(0.5))], fair: ['200', '404'], late: other })
  }
}

/** One reply in the moment of the timeout, about which it is kept however slow the machine is: half of the replies win. */
export function replyAtEdge(timeoutMs: number): Kind {
  let offsetMs = 0
  return async (world, random) => {
    const { race, one, other } = await start(world, random)
    await sleep(race.askedAt + timeoutMs + offsetMs + random.between(-EDGE_MS, EDGE_MS) - now())
    const reply = await race.reply(one, random.chance(0.5))
    offsetMs += reply.status === 200 ? STEP_MS : -STEP_MS
    return settle({ race, replies: [reply], fair: ['200', '404'], late: other })
  }
}

const EDGE_MS = 3
const STEP_MS = 4

async function start(world: World, random: Random): Promise<{ race: Race; one: Member; other: Member }> {
  const [one, other] = random.shuffle(world.gateways)
  if (!one || !other) throw new Error('a race takes two gateways')
  return { race: await Race.start(world, random.pick([one, other])), one, other }
}

type Settled = { race: Race; replies: readonly Reply[]; fair: readonly string[]; late: Member }

async function settle({ race, replies, fair, late }: Settled): Promise<Raced> {
  const { isAllowed, hasActed, resumedInMs } = await race.outcome()
  const { status: lateStatus } = await race.reply(late, true)
  const wasReplied = replies.some(({ status }) => status === 200)
  return { resumedInMs, wasReplied, problem: problemOf({ replies, fair, isAllowed, hasActed, lateStatus }) }
}

export type Verdict = {
  replies: readonly Reply[]
  /** The statuses that the replies may have between them. */
  fair: readonly string[]
  /** By the tool's result, and by what the tool has done. */
  isAllowed: boolean
  hasActed: boolean
  lateStatus: number
}

/** The engine does what was told ok, and nothing where nobody was; who is late is told so. */
export function problemOf({ replies, fair, isAllowed, hasActed, lateStatus }: Verdict): string | undefined {
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
