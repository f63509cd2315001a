import { prepare } from '../../api.ts'
import type { Attack, AttackPlan, Surroundings, Tenant, Use } from '../attack.ts'
import { timed, useAtOnce } from '../neighbour.ts'

/** More than a run keeps when memory is short. */
const OTHER = '/blocks 600 1'
/** As many bytes in both: the memory counts bytes, and events cost time. */
const HOSTILE = { short: '/blocks 63 30', full: '/blocks 1900 1' }
/** Enough to exceed the memory for events of each worker. */
const HOSTILE_RUNS = { standalone: 45, cluster: 90 }
const AT_ONCE = 5

/** The events of runs that have ended, which stay in memory for clients that come back. */
export const LARGE_ANSWERS: AttackPlan = {
  title: 'large answers',
  begin: answerMuch,
  prepare: comeBack,
  isShared: true,
}

async function answerMuch({ url, headers }: Tenant, { form, size }: Surroundings): Promise<Attack> {
  const body = { prompt: HOSTILE[size] }
  const run = () => prepare(url, { method: 'POST', path: '/agent/run', headers, body })
  for (let i = 0; i < HOSTILE_RUNS[form]; i += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, run))
  return { refused: () => 0, end: () => {} }
}

/** Makes a run with a long answer, and reads its events again and again. */
async function comeBack(other: Tenant): Promise<Use> {
  const made = await prepare(other.url, {
    method: 'POST',
    path: '/agent/run',
    headers: other.headers,
    body: { prompt: OTHER },
  })
  const path = `/runs/${made.headers.get('x-run-id')}/events?last_event_id=1`
  const rest = made.text.slice(made.text.indexOf('id: 2\n'))
  return (rounds) =>
    useAtOnce(async (measured) => {
      for (let round = 0; round < rounds; round++) {
        const text = await timed(other, { method: 'GET', path }, measured)
        if (!text.includes(rest)) measured.refusals.push(`the events of a run are not all there: ${text.slice(-200)}`)
      }
    })
}
