import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import { growth, median } from '../statistics.ts'

const MESSAGES = 30
const COMPARED = 5
const TOKENS = 20
const WARM_UP_SESSIONS = 4

/** Whether messages become slower as a session's history grows: the median over many sessions, one after the other. */
export const sessionGrowth: Figure = {
  name: 'session-growth',
  title: `${MESSAGES} messages of a session, last ${COMPARED} to first ${COMPARED}`,
  goal: { atMost: 1.1 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  using client = new Client(await bench.ours(), bench.signal)
  const sessions: number[][] = []
  for (let count = -WARM_UP_SESSIONS; count < bench.pick(31, 11); count += 1) {
    const times = await converse(client)
    if (count >= 0) sessions.push(times)
  }
  const middle = (part: (times: number[]) => number[]) => median(sessions.flatMap(part)).toFixed(2)
  const first = middle((times) => times.slice(0, COMPARED))
  const last = middle((times) => times.slice(-COMPARED))
  const value = median(sessions.map((times) => growth(times, COMPARED)))
  return { value, detail: `first ${first} ms, last ${last} ms, ${sessions.length} sessions` }
}

/** Sends the messages of a new session and returns the time of each. */
async function converse(client: Client): Promise<number[]> {
  const { session_id } = (await client.json('/v1/sessions', {})) as { session_id: string }
  const path = `/v1/sessions/${session_id}/messages`
  const times: number[] = []
  while (times.length < MESSAGES) times.push((await client.stream(TOKENS, { path })).totalMs)
  return times
}
