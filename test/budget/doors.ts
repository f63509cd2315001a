import { randomUUID } from 'node:crypto'
import type { PlanView } from '../../shared/work/plans/view.ts'
import type { Answer, Received } from '../support/model-server/model-server.ts'
import type { Reply } from '../support/product.ts'
import { until } from '../support/until.ts'
import type { Engine } from './killable.ts'

/** A way by which model calls begin. `burst` starts so many at once and resolves, when all have ended, with what each has said. */
export type Door = {
  name: string
  /** What the calls need, made before the budget is set. */
  prepare?(product: Engine, count: number): Promise<void>
  burst(product: Engine, count: number): Promise<string[]>
  /** Default: an answer in one word. */
  answer?(request: Received): Answer
  /** It kills processes. */
  isDeadly?: boolean
}

const ENDED_WITHIN_MS = 300_000
const SCHEDULES = 20
const EVALUATED = 20
const SUB_AGENTS = 8
const FLOW = {
  input_schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  output_schema: { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] },
}
const FLOW_RUN = { provider_instance: 'main', model: 'test-model' }
const GOOD = '{"answer":"yes"}'

const each = (count: number, start: (i: number) => Promise<string>): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => start(i)))

/** A door of one POST that answers with the end. */
const posting = (name: string, path: string, bodyOf: (i: number) => object): Door => ({
  name,
  burst: (product, count) => each(count, async (i) => (await product.call('POST', path, bodyOf(i))).text),
})

const idOf = ({ body, text }: Reply): string => {
  const { id, run_id: runId, session_id: sessionId } = body as Partial<Record<string, string>>
  const found = id ?? runId ?? sessionId
  if (found === undefined) throw new Error(`no id in ${text}`)
  return found
}

/** What the run says at its end, or why it did not start. */
async function endOfRun(product: Engine, started: Reply): Promise<string> {
  if (started.status !== 202) return started.text
  const frames = await (await product.stream(`/runs/${idOf(started)}/events`)).all()
  return JSON.stringify(frames.at(-1)?.data)
}

/** What each step has said: its output, or why the plan ended without it. */
async function outcomes(product: Engine, planId: string): Promise<string[]> {
  const ended = async () => {
    const { body } = await product.call('GET', `/plans/${planId}`)
    const plan = body as PlanView
    return ['done', 'failed', 'cancelled'].includes(plan.status) && plan
  }
  const plan = await until(ended, { what: 'the plan to end', withinMs: ENDED_WITHIN_MS, everyMs: 500 })
  return plan.steps.map(({ id }) => plan.step_outputs?.[id] ?? String(plan.error))
}

const planOf = (count: number) => ({
  parallel: true,
  steps: Array.from({ length: count }, (_, i) => ({ id: `s${i}`, prompt: `Do ${i}.` })),
})

/** A plan has at most so many steps. */
const MOST_STEPS = 50

async function submitPlans(product: Engine, count: number): Promise<string[]> {
  const sizes = Array.from({ length: Math.ceil(count / MOST_STEPS) }, (_, i) =>
    Math.min(MOST_STEPS, count - i * MOST_STEPS),
  )
  const plans = await Promise.all(
    sizes.map(async (size) => outcomes(product, idOf(await product.call('POST', '/plans/submit', planOf(size))))),
  )
  return plans.flat()
}

async function publishFlow(product: Engine): Promise<void> {
  const put = await product.call('PUT', '/flows/burst', FLOW)
  const published = await product.call('POST', '/flows/burst/publish')
  if (put.status !== 200 || published.status !== 200) throw new Error(`${put.text} ${published.text}`)
}

const runFlow = async (product: Engine, i: number): Promise<string> =>
  (await product.call('POST', '/flows/burst/run', { ...FLOW_RUN, input: { text: `text ${i}` } })).text

async function sendInSession(product: Engine, i: number): Promise<string> {
  const session = idOf(await product.call('POST', '/sessions', {}))
  return (await product.call('POST', `/sessions/${session}/messages`, { prompt: `Do ${i}.` })).text
}

async function tickSchedules(product: Engine, count: number): Promise<string[]> {
  const names = Array.from({ length: Math.min(SCHEDULES, count) }, (_, i) => `burst-${i}`)
  const body = { every_secs: 1, plan: planOf(Math.ceil(count / names.length)) }
  const paths = names.map((name) => `/plans/schedules/${name}`)
  await Promise.all(paths.map((path) => product.call('PUT', path, body)))
  const plans = async () => ((await product.call('GET', '/plans?limit=200')).body as { plans: { id: string }[] }).plans
  await until(async () => (await plans()).length >= names.length, { what: 'the schedules to tick', withinMs: 60_000 })
  await Promise.all(paths.map((path) => product.call('DELETE', path)))
  return (await Promise.all((await plans()).map(({ id }) => outcomes(product, id)))).flat()
}

async function evaluate(product: Engine, count: number): Promise<string[]> {
  const bodies = await each(Math.ceil(count / EVALUATED), async () => {
    return (await product.call('POST', '/flows/burst/evaluate', { limit: EVALUATED })).text
  })
  return bodies.flatMap((text) => {
    const { runs } = JSON.parse(text) as { runs?: object[] }
    return runs ? runs.map((run) => JSON.stringify(run)) : [text]
  })
}

/** Runs whose first turns start the sub-agents. */
async function askSubAgents(product: Engine, count: number): Promise<string[]> {
  const runs = Array.from({ length: Math.ceil(count / SUB_AGENTS) }, async (_, i) => {
    const size = Math.min(SUB_AGENTS, count - i * SUB_AGENTS)
    const { text } = await product.call('POST', '/agent/run', { prompt: `Start ${size} sub-agents.` })
    const ended = text.split('\n\n').filter((block) => block.includes('event: subagent_end'))
    return ended.length > 0 ? ended : Array.from({ length: size }, () => text)
  })
  return (await Promise.all(runs)).flat()
}

/** Runs at work whose processes then die, each in its first call of the model, which counts again at the next process. */
class Recovered implements Door {
  readonly name = 'recovered runs'
  readonly isDeadly = true
  #runs: string[] = []
  #isDead = false

  async prepare(product: Engine, count: number): Promise<void> {
    this.#isDead = false
    const accepted = async (i: number) => {
      const body = { prompt: `Do ${i} until the death.`, background: true }
      const started = await product.call('POST', '/agent/run', body)
      return started.status === 202 && idOf(started)
    }
    this.#runs = []
    for (let i = 0; i < count; i++)
      this.#runs.push(await until(() => accepted(i), { ...PATIENCE, what: 'a run to be accepted' }))
    const begun = () => product.model.requests.length >= count
    await until(begun, { what: 'all runs to be at work', withinMs: ENDED_WITHIN_MS })
  }

  async burst(product: Engine, count: number): Promise<string[]> {
    if (count === 1) return [(await product.call('POST', '/agent/run', { prompt: 'Do one.' })).text]
    this.#isDead = true
    await product.kill?.()
    const ends: string[] = []
    for (const id of this.#runs) ends.push(await until(() => this.#endOf(product, id), PATIENCE))
    return ends
  }

  readonly answer = ({ prompt }: Received): Answer =>
    prompt.includes('until the death') && !this.#isDead ? [{ hang: true }] : 'ok'

  async #endOf(product: Engine, id: string): Promise<string | undefined> {
    const { body, text } = await product.call('GET', `/runs/${id}`)
    if (!(body as { ended_at?: string | null }).ended_at) return undefined
    if (/budget|"done"/.test(text)) return text
    return JSON.stringify((await (await product.stream(`/runs/${id}/events`)).all()).at(-1)?.data)
  }
}

const PATIENCE = { what: 'the runs to end', withinMs: ENDED_WITHIN_MS, everyMs: 500 }

const message = (i: number, text = `Do ${i}.`) => ({ role: 'user', content: text })
const A2A = (i: number) => ({
  ...{ jsonrpc: '2.0', id: i, method: 'SendMessage' },
  params: { message: { messageId: `m-${i}`, role: 'ROLE_USER', parts: [{ text: `Do ${i}.` }] } },
})
const UI = (i: number) => ({
  ...{ id: `ui-${randomUUID()}`, trigger: 'submit-message' },
  messages: [{ id: `m-${i}`, role: 'user', parts: [{ type: 'text', text: `Do ${i}.` }] }],
})
const AG_UI = (i: number) => ({
  ...{ threadId: `ag-${randomUUID()}`, runId: `r-${i}`, state: {}, tools: [], context: [], forwardedProps: {} },
  messages: [{ id: `m-${i}`, ...message(i) }],
})

/** A conversation that the provider finds too long, so that it is summarised first. */
const LONG = (i: number) => ({
  model: 'main',
  messages: [
    ...Array.from({ length: 12 }, (_, at) => ({ role: at % 2 ? 'assistant' : 'user', content: `${at} `.repeat(500) })),
    message(i, `Do ${randomUUID()} after a summary.`),
  ],
})
const seen = new Set<string>()
function tooLongAtFirst({ prompt }: Received): Answer {
  if (!prompt.includes('after a summary.') || seen.has(prompt)) return 'ok'
  seen.add(prompt)
  return { contextTooLong: true }
}

const subAgents = ({ prompt }: Received): Answer => {
  const [, count] = /^Start (\d+) sub-agents\.$/m.exec(prompt) ?? []
  const task = (i: number) => ({ tool: 'Agent', input: { description: `task ${i}`, prompt: `Do ${i}.` } })
  return count === undefined ? 'ok' : Array.from({ length: Number(count) }, (_, i) => task(i))
}

export const DOORS: readonly Door[] = [
  posting('runs', '/agent/run', (i) => ({ prompt: `Do ${i}.` })),
  { name: 'sessions', burst: (product, count) => each(count, (i) => sendInSession(product, i)) },
  {
    name: 'background',
    burst: (product, count) =>
      each(count, async (i) =>
        endOfRun(product, await product.call('POST', '/agent/run', { prompt: `Do ${i}.`, background: true })),
      ),
  },
  posting('chat', '/openai/v1/chat/completions', (i) => ({ model: 'main', messages: [message(i)] })),
  posting('Responses', '/openai/v1/responses', (i) => ({ model: 'main', input: `Do ${i}.` })),
  posting('A2A', '/a2a', A2A),
  posting('AG-UI', '/ag-ui', AG_UI),
  posting('UI', '/ui/chat', UI),
  {
    name: 'flows',
    prepare: publishFlow,
    burst: (product, count) => each(count, (i) => runFlow(product, i)),
    answer: () => GOOD,
  },
  { name: 'plans', burst: submitPlans },
  { name: 'schedules', burst: tickSchedules },
  {
    name: 'evaluations',
    async prepare(product) {
      await publishFlow(product)
      for (let i = 0; i < EVALUATED; i++) await runFlow(product, i)
      await product.call('PUT', '/flows/burst', { ...FLOW, system_prompt_template: 'Answer shortly.' })
    },
    burst: evaluate,
    answer: () => GOOD,
  },
  posting('probes', '/config/instances/main/probe', () => ({ model: 'test-model' })),
  { ...posting('compaction', '/openai/v1/chat/completions', LONG), answer: tooLongAtFirst },
  { name: 'sub-agents', burst: askSubAgents, answer: subAgents },
  new Recovered(),
]
