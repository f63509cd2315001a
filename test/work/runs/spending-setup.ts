import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import type { Models, RunResources, Tools } from '../../../shared/agent/engine/resources.ts'
import { failure } from '../../../shared/agent/providers/failures/failures.ts'
import type { ModelPart, ModelProvider, PriceOf } from '../../../shared/agent/providers/port.ts'
import { succeed, type Tool } from '../../../shared/agent/tools/port.ts'
import type { RunEvent, RunTotals } from '../../../shared/kernel/events.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import type { BudgetRefusal } from '../../../shared/tenancy/limits/budgets.ts'
import { createMeter } from '../../../shared/tenancy/limits/meter.ts'
import { FREE_TURN } from '../../../shared/tenancy/room/rooms.ts'
import type { RunUsage } from '../../../shared/tenancy/usage/port.ts'
import { RunReporter } from '../../../shared/work/runs/run-report.ts'
import { resourcesOf } from '../../agent/engine/tool-step-setup.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { tenantId } from '../../support/tenant.ts'

export const TENANT = tenantId('t_1')

const CODES = ['provider_rejected', 'provider_unavailable', 'timeout', 'context_too_long'] as const
const TOOLS = ['Agent', 'Agents', 'Look', 'Hang', 'Ask', 'Finish'] as const

/** What one model call answers: deltas, tool calls, and how it ends. */
type Answer = {
  thinking: number
  texts: readonly number[]
  calls: readonly (typeof TOOLS)[number][]
  end: 'counted' | 'uncounted' | 'stop' | (typeof CODES)[number]
  isFailover: boolean
}

const answer: fc.Arbitrary<Answer> = fc.record({
  thinking: fc.nat(30),
  texts: fc.array(fc.nat(30), { maxLength: 3 }),
  calls: fc.oneof(
    fc.constant(['Agents'] as const),
    fc.array(fc.constantFrom(...TOOLS, 'Agent' as const), { maxLength: 3 }),
  ),
  end: fc.oneof({ weight: 3, arbitrary: fc.constant('counted') }, fc.constantFrom('uncounted', 'stop', ...CODES)),
  isFailover: fc.boolean(),
})

/** It begins without a text, and is found too long then: the turn is asked for again. */
const REJECTED: Answer = { thinking: 0, texts: [0], calls: [], end: 'context_too_long', isFailover: false }

/** Now and then, at one of the first `max` times. */
const rarely = (max: number, freq: number) => fc.oneof({ weight: freq, arbitrary: fc.constant(undefined) }, fc.nat(max))

/** The calls' answers in the order in which they begin, and when and how the run is ended from outside. */
export const story = fc.record({
  answers: fc.array(fc.oneof({ weight: 9, arbitrary: answer }, fc.constant(REJECTED)), { maxLength: 12, size: 'max' }),
  history: fc.constantFrom(0, 30),
  abortAt: rarely(60, 1),
  refuseAt: rarely(12, 4),
  bugAt: rarely(20, 4),
  isUnpriced: fc.boolean(),
})

export type Story = typeof story extends fc.Arbitrary<infer T> ? T : never

export const STOP = 'STOP'

/** The parts of an answer. A provider that fails before its first part may hand over to its fallback. */
function* partsOf({ thinking, texts, calls, end, isFailover }: Answer, at: number): Generator<ModelPart> {
  if (thinking > 20) yield { type: 'thinking_delta', text: 't'.repeat(thinking) }
  if (thinking > 20) yield { type: 'thinking_end' }
  for (const length of texts) yield { type: 'text_delta', text: 'x'.repeat(length) }
  if (end === 'stop') yield { type: 'text_delta', text: `${STOP} and more` }
  for (const [i, toolName] of calls.entries()) yield { type: 'tool_call', id: `c${at}_${i}`, toolName, input: '{}' }
  if (end === 'counted' || end === 'uncounted' || end === 'stop') {
    const usage = { input: 100 + at, cacheRead: at % 3, cacheWrite: 0, output: 10 + at }
    yield { type: 'finish', reason: 'end_turn', usage: end === 'uncounted' ? undefined : usage }
    return
  }
  yield { type: 'failure', failure: failure(end, 'it_broke', 'it broke', { isRetryable: false, isFailover }) }
}

/** A tenant's budget, its metered models with a fallback, and the tools, as one story has them. */
export function stage({ answers, abortAt, refuseAt, bugAt, isUnpriced }: Story) {
  const caller = new AbortController()
  const budget = { tokens: 0, costUsd: 0 }
  let [calls, open, parts, routes] = [0, 0, 0, 0]
  /** Something happens: the run may be ended from outside now. */
  const tick = () => {
    if (parts++ === abortAt) caller.abort('cancelled')
  }
  const provider = (type: string): ModelProvider => ({
    type,
    async *stream(_request, signal) {
      const at = calls++
      open++
      try {
        for (const part of partsOf(answers[at] ?? LAST, at)) {
          await nextTurn()
          tick()
          if (signal.aborted) return
          yield part
        }
      } finally {
        open--
      }
    },
  })
  const settle = ({ tokens, costUsd }: typeof budget) => {
    budget.tokens += tokens
    budget.costUsd += costUsd
  }
  const reserve = async () => (refuseAt !== undefined && calls >= refuseAt ? REFUSAL : { settle })
  const priceOf: PriceOf = ({ type }, _model, { input, output }) =>
    isUnpriced && type === 'spare' ? undefined : input + 2 * output
  const [main, spare] = [provider('main'), provider('spare')]
  const route = () => {
    if (routes++ === bugAt) throw new TypeError('a bug')
    return { primary: { provider: main, model: 'm' }, fallback: { provider: spare, model: 's' } }
  }
  const meter = createMeter({ reservations: { reserve }, gate: { enter: () => FREE_TURN }, priceOf })
  const windowOf = () => 12_000
  const plain: Models = { main: route, subAgents: route, summaries: route, priceOf, windowOf }
  /** Resolves when no model is being called any more: then the budget is whole. */
  const settled = async () => {
    for (let quiet = 0; quiet < 3; quiet = open === 0 ? quiet + 1 : 0) await nextTurn()
  }
  return { caller, budget, settled, tick, meter, main, plain, priceOf, windowOf, models: meter.models(TENANT, plain) }
}

const LAST: Answer = { thinking: 0, texts: [5], calls: [], end: 'counted', isFailover: false }
const REFUSAL: BudgetRefusal = {
  ...{ code: 'budget_exhausted', message: 'it is used up', reason: 'tokens_per_day', retryAfterSecs: 1 },
}

/** `Hang` goes on when the run has ended; `Ask` is never answered; `Finish` ends the run with a plan. */
export function resources({ models, caller }: Pick<ReturnType<typeof stage>, 'models' | 'caller'>): RunResources {
  const task = { description: 'task', prompt: 'p'.repeat(20) }
  const runs: Record<(typeof TOOLS)[number], Tool['run']> = {
    Agent: async (_input, { agents }) => succeed((await agents.run(task)).result),
    Agents: async (_input, { agents }) => succeed(String(await Promise.all([agents.run(task), agents.run(task)]))),
    Look: async () => succeed('looked'),
    Hang: () =>
      caller.signal.aborted
        ? Promise.resolve(succeed(''))
        : new Promise(() => setImmediate(() => caller.abort('session_deleted'))),
    Ask: async () => succeed('asked'),
    Finish: async () => ({ ...succeed('planned'), ending: { type: 'plan_queued', plan_id: 'plan_1' } }),
  }
  const tools = TOOLS.map(
    (name): Tool => ({
      name,
      description: name,
      inputSchema: {},
      defaultPolicy: 'allow',
      describe: () => name,
      run: runs[name],
    }),
  )
  const { subAgentsFor: _none, ...step } = resourcesOf({ tools, signal: caller.signal })
  const policyOf = (name: string) => (name === 'Ask' ? 'ask' : 'allow')
  const toolBox: Tools['toolBox'] = { ...step.tools.toolBox, policyOf }
  const openAsk = () => {
    setImmediate(() => caller.abort('cancelled'))
    return new Promise<never>(() => {})
  }
  return { ...step, models, tools: { ...step.tools, toolBox }, permissions: { openAsk } }
}

/** Reports runs, and keeps what `GET /usage` adds up. */
export function reports() {
  const used: Used[] = []
  const usage = { add: (_tenant: unknown, each: RunUsage) => void used.push(each) }
  return { reporter: new RunReporter({ log: SILENT_LOG, metrics: NO_METRICS, usage }), used }
}

type Used = { input_tokens?: number | undefined; output_tokens?: number | undefined; cost_usd?: number | undefined }

export const sumOf = ({ input_tokens = 0, output_tokens = 0, cost_usd = 0 }: Used) => ({
  tokens: input_tokens + output_tokens,
  costUsd: cost_usd,
})

/** The totals of a run's last event. */
export function totalsOf(event: RunEvent | undefined) {
  const { total_tokens: tokens, cost_usd: costUsd } = event as Partial<RunTotals>
  return { tokens, costUsd }
}
