import { until } from '../../../support/until.ts'
import { callPatiently, prepare } from '../../api.ts'
import type { Attack, AttackPlan, Tenant, Use } from '../attack.ts'
import { usePlans, useService } from '../neighbour.ts'

/** Plans that hang in a slot or wait for one, sent as fast as they are answered, and by the clock. */
export const PLANS: AttackPlan = { title: 'plans and schedules', begin: queuePlans, prepare: planAndRun }

const SCHEDULES = 12
const CLIENTS = 4
const LONGEST_PROMPT = 100_000

/** As long as the plan of a schedule can be, about. */
const SCHEDULED = planOf(10, 25_000)
/** 6 MB, to take the room. The texts are made once: this process measures the other tenant. */
const LONG = JSON.stringify(planOf(60, LONGEST_PROMPT))
const SHORT = JSON.stringify(SCHEDULED)

function planOf(steps: number, chars: number) {
  const prompt = '/hang\n'.padEnd(chars, 'x')
  return { steps: Array.from({ length: steps }, (_, i) => ({ id: `s${i}`, prompt })) }
}

async function queuePlans({ url, headers }: Tenant): Promise<Attack> {
  const over = new AbortController()
  const names = Array.from({ length: SCHEDULES }, (_, i) => `often-${i}`)
  for (const name of names) {
    const body = { every_secs: 1, plan: SCHEDULED }
    await prepare(url, { method: 'PUT', path: `/plans/schedules/${name}`, headers, body })
  }
  const asJson = { ...headers, 'content-type': 'application/json' }
  let refused = 0
  const submit = async () => {
    while (!over.signal.aborted) {
      const body = refused === 0 ? LONG : SHORT
      const answer = await fetch(`${url}/plans/submit`, { method: 'POST', headers: asJson, body })
      await answer.arrayBuffer()
      if (answer.status === 429) refused++
    }
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, submit))
  await Promise.race([until(() => refused > 0, { what: 'the first refusal', withinMs: 60_000 }), clients])
  return {
    refused: () => refused,
    async end() {
      over.abort()
      await clients
      for (const name of names) await prepare(url, { method: 'DELETE', path: `/plans/schedules/${name}`, headers })
      for (const id of await unended({ url, headers }))
        await callPatiently(url, { method: 'POST', path: `/plans/${id}/cancel`, headers })
    },
  }
}

/** The plans that wait or run. */
async function unended({ url, headers }: Tenant): Promise<string[]> {
  const list = async (status: string) => {
    const { text } = await prepare(url, { method: 'GET', path: `/plans?limit=200&status=${status}`, headers })
    return (JSON.parse(text) as { plans: { id: string }[] }).plans.map(({ id }) => id)
  }
  return (await Promise.all(['queued', 'running'].map(list))).flat()
}

/** Makes runs, and one plan after the other, which is no more than the tenant's share. */
async function planAndRun(other: Tenant): Promise<Use> {
  const plan = await usePlans(other, 1)
  return async (rounds) => {
    const [planned, ran] = await Promise.all([plan(rounds), useService(other, rounds)])
    return { runMs: [...planned.runMs, ...ran.runMs], refusals: [...planned.refusals, ...ran.refusals] }
  }
}
