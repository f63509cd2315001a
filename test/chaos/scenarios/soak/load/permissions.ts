import type { Random } from '../../../../harness/seed.ts'
import { type Entry, now } from '../../../history.ts'
import type { SseFrame } from '../../../sse-reader.ts'
import type { World } from '../../../world.ts'
import { type Read, readRun } from './reader.ts'
import { type Loading, repeat } from './runs.ts'

const PROMPT = '/tool Write {"path":"acted","content":"yes"}'
const CERTAIN = new Set([200, 404, 409])

/** Clients whose runs ask for a permission, and are answered by one reply or by two that contradict each other. */
export async function replyToRequests(loading: Loading): Promise<Read[]> {
  const reads: Read[] = []
  await repeat(loading, async (random) => {
    reads.push(await oneRequest(loading.world, random))
  })
  return reads
}

type Replied = { isAllow: boolean; status: number; t: number }

async function oneRequest(world: World, random: Random): Promise<Read> {
  let request = ''
  let replies: Promise<Replied[]> = Promise.resolve([])
  let decision: { isAllow: boolean; t: number } | undefined
  let run = ''
  const onFrame = ({ event, data }: SseFrame) => {
    if (event === 'permission_request' && request === '') {
      request = String(data['id'])
      replies = replyTo(world, { run, request, random })
    }
    if (event === 'tool_result') decision ??= { isAllow: data['is_error'] === false, t: now() }
  }
  const onRun = (id: string) => {
    run = id
  }
  const read = await readRun(world, { path: '/agent/run', body: { prompt: PROMPT } }, { random, onFrame, onRun })
  for (const entry of entriesOf({ run, request, replies: await replies, decision })) world.record(entry)
  return read
}

async function replyTo(world: World, { run, request, random }: { run: string; request: string; random: Random }) {
  const first = random.chance(0.5)
  const wanted = random.chance(0.5) ? [first, !first] : [first]
  return Promise.all(
    wanted.map(async (isAllow): Promise<Replied> => {
      const path = `/sessions/${run}/permissions/${request}`
      const { status } = await world.ask(random.pick(world.gateways), { path, body: { allow: isAllow } })
      return { isAllow, status, t: now() }
    }),
  )
}

export type Asked = {
  run: string
  request: string
  replies: readonly Replied[]
  decision: { isAllow: boolean; t: number } | undefined
}

/**
 * The history of one request. A reply without a certain answer may have won, so the decision says nothing unless another reply was answered
 * 200; and where the client lost the run before its decision, a reply that was answered 200 says nothing.
 */
export function entriesOf({ run, request, replies, decision }: Asked): Entry[] {
  const hasWinner = replies.some(({ status }) => status === 200)
  const isCertain = hasWinner || replies.every(({ status }) => CERTAIN.has(status))
  const winners = replies.filter(({ status }) => status === 200)
  const shown = decision !== undefined || winners.length > 1 ? replies : []
  return [
    ...shown.map((reply): Entry => ({ kind: 'reply', run, request, ...reply })),
    ...(decision && isCertain ? [{ kind: 'decision', run, request, ...decision } as const] : []),
  ]
}
