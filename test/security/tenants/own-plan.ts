import { until } from '../../support/until.ts'
import { prepare, type Reply } from '../api.ts'
import { type Ids, random } from './ids.ts'
import type { FlowOwning } from './own-flow.ts'

/** Gives a tenant a plan that has ended and two schedules. `keep` gets every answer. */
export async function ownPlan(
  { url, headers, model }: FlowOwning,
  { prompt, answer }: { prompt: string; answer: string },
  keep: (reply: Reply) => Reply,
): Promise<Pick<Ids, 'plan' | 'schedule'>> {
  const schedule = `schedule-${random()}`
  const send = async (method: string, path: string, body?: object) =>
    keep(await prepare(url, { method, path, headers, ...(body && { body }) }))
  const plan = { title: prompt, steps: [{ id: 'a', prompt }] }
  await send('PUT', `/plans/schedules/${schedule}`, { every_secs: 31_536_000, plan })
  await send('PUT', '/plans/schedules/another', { every_secs: 31_536_000, plan })
  let id = ''
  for (let count = 0; count < 2; count++) {
    model.answer(answer)
    const submitted = await send('POST', '/plans/submit', plan)
    id = (JSON.parse(submitted.text) as { id: string }).id
    await send('GET', `/plans/${id}/events`)
    // Its stream may break off before. No step is to take an answer that is meant for others.
    await until(async () => isEnded(await send('GET', `/plans/${id}`)), { what: 'the plan to end' })
  }
  return { plan: id, schedule }
}

const isEnded = ({ text }: Reply): boolean => (JSON.parse(text) as { ended_at: string | null }).ended_at !== null
