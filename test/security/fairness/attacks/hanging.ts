import { until } from '../../../support/until.ts'
import { call, callPatiently, prepare } from '../../api.ts'
import type { Attack, AttackPlan, Surroundings, Tenant, Use } from '../attack.ts'
import { useFlows, usePlans } from '../neighbour.ts'

/** Flows and plans whose models never answer: more than an executor has slots for. */
export const HANGING_ATTACKS: readonly AttackPlan[] = [
  { title: 'hanging flows', begin: hangFlows, prepare: warm(useFlows), isShared: true },
  { title: 'hanging plans', begin: hangPlans, prepare: warm(usePlans), isShared: true },
]

/** RUNS_PER_WORKER of the attacked server, and an eighth of it. */
const FLOW_SLOTS = 64
const PLAN_SLOTS = FLOW_SLOTS / 8
const FLOWS = { short: 100, full: 300 }
const PLANS = { short: 20, full: 40 }
/** Of more at once some might be refused, because too many inputs wait to be checked. */
const AT_ONCE = 10
const ANYTHING = { type: 'object' }

/** The first flow or plan of a process loads code. */
export function warm(prepareUse: (other: Tenant) => Promise<Use>): (other: Tenant) => Promise<Use> {
  return async (other) => {
    const use = await prepareUse(other)
    await use(1)
    return use
  }
}

async function hangFlows(hostile: Tenant, { model, size }: Surroundings): Promise<Attack> {
  const { url, headers } = hostile
  const flow = { model: 'm', user_prompt_template: '/hang', input_schema: ANYTHING, output_schema: ANYTHING }
  await prepare(url, { method: 'PUT', path: '/flows/hanging', body: flow, headers })
  await prepare(url, { method: 'POST', path: '/flows/hanging/publish', headers })
  const hangs = countHangs(model)
  const abort = new AbortController()
  const start = () =>
    fetch(`${url}/flows/hanging/run`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ provider_instance: 'main', input: {} }),
      signal: abort.signal,
    })
  const answers: Response[] = []
  while (answers.length < FLOWS[size]) answers.push(...(await Promise.all(Array.from({ length: AT_ONCE }, start))))
  for (const answer of answers) void answer.arrayBuffer().catch(() => {}) // Reads until the attack ends.
  await until(() => hangs() >= FLOW_SLOTS, { what: 'every slot for flows to be taken', lastSeen: hangs })
  return {
    refused: () => 0,
    async end() {
      const cancel = (answer: Response) =>
        callPatiently(url, { method: 'DELETE', path: `/runs/${answer.headers.get('x-run-id')}`, headers })
      await Promise.all(answers.map(cancel))
      abort.abort()
    },
  }
}

async function hangPlans({ url, headers }: Tenant, { model, size }: Surroundings): Promise<Attack> {
  const hangs = countHangs(model)
  const body = { steps: [{ id: 'a', prompt: '/hang' }] }
  const submit = () => prepare(url, { method: 'POST', path: '/plans/submit', body, headers })
  const submitted = await Promise.all(Array.from({ length: PLANS[size] }, submit))
  await until(() => hangs() >= PLAN_SLOTS, { what: 'every slot for plans to be taken', lastSeen: hangs })
  return {
    refused: () => 0,
    async end() {
      const ids = submitted.map(({ text }) => (JSON.parse(text) as { id: string }).id)
      await Promise.all(ids.map((id) => call(url, { method: 'POST', path: `/plans/${id}/cancel`, headers })))
    },
  }
}

/** Returns what counts the calls of the model from now on that hang. */
function countHangs({ requests }: Surroundings['model']): () => number {
  const before = requests.length
  return () => requests.slice(before).filter(({ prompt }) => prompt.includes('/hang')).length
}
