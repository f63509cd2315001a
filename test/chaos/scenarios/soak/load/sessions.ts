import { now } from '../../../history.ts'
import { paced } from '../../../prompts.ts'
import { readRun } from './reader.ts'
import { type Loading, repeat } from './runs.ts'

/** A session of one client, as it saw it. */
export type SeenSession = {
  id: string
  from: number
  to: number
  /** Messages that were answered to the end. */
  done: number
  /** The last message, where it did not end with `done`; a number for the status of the session's own description. */
  lost?: string
  /** Messages in the conversation, as the session says in the end. */
  count?: number
}

const PROMPT = paced({ count: 6, everyMs: 120 })

/** Clients that each create a session, send a few messages and delete it. */
export async function talk(loading: Loading): Promise<SeenSession[]> {
  const { world, signal } = loading
  const seen: SeenSession[] = []
  await repeat(loading, async (random) => {
    const { status, body } = await world.ask(random.pick(world.gateways), { path: '/sessions', body: {} })
    if (status !== 201) return
    const id = (body as { session_id: string }).session_id
    const session: SeenSession = { id, from: now(), to: Number.POSITIVE_INFINITY, done: 0 }
    seen.push(session)
    for (let left = random.between(2, 12); left > 0 && !signal.aborted && !session.lost; left--) {
      const { end } = await readRun(
        world,
        { path: `/sessions/${id}/messages`, body: { prompt: PROMPT } },
        { random, leaves: Number(random.chance(0.2)) },
      )
      if (end === 'done') session.done++
      else session.lost = end
    }
    const found = await world.ask(random.pick(world.gateways), { path: `/sessions/${id}` })
    session.to = now()
    if (found.status === 200) session.count = (found.body as { message_count: number }).message_count
    else session.lost ??= `status ${found.status}`
    await world.ask(random.pick(world.gateways), { method: 'DELETE', path: `/sessions/${id}` })
  })
  return seen
}
