// Tests meter.ts and metered-answer.ts.
import { expect } from 'chai'
import type { Models } from '../../../shared/agent/engine/resources.ts'
import { ABANDONED } from '../../../shared/agent/providers/failures/hedge.ts'
import type { ModelPart, ModelProvider } from '../../../shared/agent/providers/port.ts'
import { oneByOne } from '../../../shared/kernel/async/batch.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { BudgetRefusal } from '../../../shared/tenancy/limits/budgets.ts'
import { createMeter, type Meter, NO_METER } from '../../../shared/tenancy/limits/meter.ts'
import type { Payer } from '../../../shared/tenancy/limits/periods.ts'
import type { Spent } from '../../../shared/tenancy/limits/port.ts'
import { FREE_TURN } from '../../../shared/tenancy/room/rooms.ts'
import { tenantId } from '../../support/tenant.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const SIGNAL = new AbortController().signal
const USAGE = { input: 90, cacheRead: 0, cacheWrite: 0, output: 10 }
const FINISH: ModelPart = { type: 'finish', reason: 'end_turn', usage: USAGE }
const FAILED: ModelPart = {
  type: 'failure',
  failure: {
    code: 'provider_unavailable',
    message: '',
    reason: '',
    isRetryable: true,
    isFailover: true,
  },
}
const REQUEST = {
  model: 'm',
  messages: [{ role: 'user' as const, text: 'x'.repeat(40) }],
  tools: [],
  stopSequences: [],
}
const text = (chars: number): ModelPart => ({ type: 'text_delta', text: 'y'.repeat(chars) })

describe('a metered provider', () => {
  let spent: (Spent & { tenant: TenantId })[]
  let refusal: BudgetRefusal | undefined
  let reserved: Spent | undefined
  let meter: Meter
  let closed: number
  let unpriced: unknown[]
  let waits: unknown[]

  beforeEach(() => {
    spent = []
    refusal = undefined
    closed = 0
    unpriced = []
    waits = []
    const reserve = async ({ tenant }: Payer, most: () => Spent) => {
      reserved = most()
      return refusal ?? { settle: (used: Spent) => void (used.tokens > 0 && spent.push({ tenant, ...used })) }
    }
    meter = createMeter({
      reservations: { reserve },
      gate: { enter: ({ waitMs }) => (waits.push(waitMs), FREE_TURN) },
      priceOf: ({ type }) => (type === 'openai' ? 0.5 : undefined),
      onUnpriced: (...call) => unpriced.push(call),
    })
  })

  const answering = (parts: ModelPart[], type = 'openai'): ModelProvider => ({
    type,
    contextWindow: 7,
    takesTools: () => false,
    askWindow: async () => 9,
    async *stream() {
      try {
        yield* parts
      } finally {
        closed += 1
      }
    },
  })

  async function read(provider: ModelProvider, count = Number.POSITIVE_INFINITY): Promise<ModelPart[]> {
    const got: ModelPart[] = []
    for await (const part of oneByOne(provider.stream(REQUEST, SIGNAL))) if (got.push(part) >= count) break
    return got
  }
  const metered = (parts: ModelPart[]) => meter.provider(TENANT, answering(parts))
  const spentOn = async (parts: ModelPart[], count?: number) => {
    await read(metered(parts), count)
    return spent.splice(0).map(({ tokens }) => tokens)
  }

  it('a call is passed on and counted once, with its tokens and its price', async () => {
    const parts = [text(2), FINISH]
    expect(await read(metered(parts))).to.deep.equal(parts)
    expect(spent).to.deep.equal([{ tenant: TENANT, tokens: 100, costUsd: 0.5 }])
  })

  it('a call reserves its input as estimated, and the longest answer of late, or what its instance and the run allow', async () => {
    const provider = metered([FINISH])
    await read(provider)
    expect(reserved).to.include({ tokens: 1_011, costUsd: 0.5 })
    for await (const part of provider.stream({ ...REQUEST, choices: { maxOutputTokens: 7 } }, SIGNAL)) void part
    expect(reserved?.tokens).to.equal(18)
    await read(meter.provider(TENANT, { ...answering([FINISH]), maxOutputTokens: 9_000 }))
    expect(reserved?.tokens).to.equal(9_011)
  })

  it('the price of a call without a budget is looked up behind its answer', async () => {
    const steps: string[] = []
    const unlimited = createMeter({
      reservations: { reserve: () => ({ settle: () => {} }) },
      gate: { enter: () => FREE_TURN },
      priceOf: () => void steps.push('price'),
    })
    for await (const part of unlimited.provider(TENANT, answering([text(1), FINISH])).stream(REQUEST, SIGNAL)) {
      const { type } = part as ModelPart
      steps.push(type)
    }
    expect(steps).to.deep.equal(['text_delta', 'price', 'finish'])
  })

  it('D54.7: a call waits for its turn until the deadline of its caller', async () => {
    const deadlines = [undefined, Date.now() + 3_600_000, Date.now() - 1]
    for (const deadlineMs of deadlines)
      for await (const part of metered([FINISH]).stream({ ...REQUEST, caller: { deadlineMs } }, SIGNAL)) void part
    expect([waits[0], waits[2]]).to.deep.equal([undefined, 0])
    expect(waits[1]).to.be.a('number').within(3_590_000, 3_600_000)
  })

  it('D58.6: a call that waits for a batch reserves nothing meanwhile, its answer is counted, and without a budget it does not wait', async () => {
    const plain: ModelProvider = {
      ...answering([]),
      async *pooled() {
        yield { type: 'warning', code: 'waiting_for_batch', message: '', detail: {} }
        return answering([FINISH])
      },
    }
    const pooled = meter.provider(TENANT, plain).pooled ?? expect.fail('it has no batches')
    const waiting = pooled(REQUEST, SIGNAL)
    expect((await waiting.next()).done).to.equal(false)
    const { value: answered } = await waiting.next()
    if (!answered || !('stream' in answered)) return expect.fail('no answer')
    for await (const _ of answered.stream(REQUEST, SIGNAL));
    expect(spent).to.deep.equal([{ tenant: TENANT, tokens: 100, costUsd: 0.5 }])
    refusal = { code: 'budget_exhausted', message: '', reason: 'tokens_per_day', retryAfterSecs: 1 }
    expect(await pooled(REQUEST, SIGNAL).next()).to.deep.equal({ done: true, value: undefined })
    expect(meter.provider(TENANT, answering([])).pooled).to.equal(undefined)
  })

  it('a call whose price is unknown costs no dollars, which is told', async () => {
    await read(meter.provider(TENANT, answering([FINISH], 'ollama')))
    await read(meter.provider(OTHER, answering([FINISH])))
    expect(spent[0]).to.deep.equal({ tenant: TENANT, tokens: 100, costUsd: 0 })
    expect(unpriced).to.deep.equal([[TENANT, 'm']])
  })

  it('a call that is cut off, fails or ends without a count is counted by estimate, once', async () => {
    const cutOff: [string, ModelPart[], number?][] = [
      ['the reader left', [text(80), FINISH], 1],
      ['it failed', [text(80), FAILED]],
      ['it ended', [text(80)]],
      ['without usage', [text(80), { type: 'finish', reason: 'end_turn', usage: undefined }]],
      ['a whole text', [text(80), { type: 'text_end' }]],
      ['thinking', [{ type: 'thinking_delta', text: 'y'.repeat(80) }]],
      ['a tool call', [{ type: 'tool_call', id: 't1', toolName: 'Read', input: 'y'.repeat(80) }]],
    ]
    for (const [what, parts, count] of cutOff) expect(await spentOn(parts, count), what).to.deep.equal([31])
    expect(closed).to.equal(cutOff.length)
  })

  it('a call that ended before its first part costs nothing, and can be read on without another call', async () => {
    expect(await spentOn([FAILED])).to.deep.equal([])
    expect(await spentOn([])).to.deep.equal([])
    const stream = metered([text(80)]).stream(REQUEST, SIGNAL)
    const unread = stream[Symbol.asyncIterator]()
    await unread.return?.()
    expect(await unread.next()).to.deep.equal({ done: true, value: undefined })
    expect([spent, closed]).to.deep.equal([[], 2])
  })

  it('D56: a call that was sent and then abandoned costs its input, and one that was not sent nothing', async () => {
    let sent = 0
    const abandoned = async (enter: () => Promise<typeof FREE_TURN> | typeof FREE_TURN) => {
      const stop = new AbortController()
      const waiting: ModelProvider = {
        type: 'openai',
        async *stream(_request, signal) {
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          yield* []
        },
      }
      const ended: (number | undefined)[] = []
      const reserve = async () => ({ settle: (used: Spent) => void ended.push(used.tokens) })
      const hedged = createMeter({
        ...{ reservations: { reserve }, priceOf: () => 0.5, onAbandoned: () => ended.push(-1) },
        gate: { enter: () => (setImmediate(() => stop.abort(ABANDONED)), enter()) },
      })
      const request = { ...REQUEST, onSent: () => void sent++ }
      for await (const part of hedged.provider(TENANT, waiting).stream(request, stop.signal)) void part
      return ended
    }
    expect(await abandoned(() => FREE_TURN)).to.deep.equal([-1, 11])
    expect(sent).to.equal(1)
    const late = () => new Promise<typeof FREE_TURN>((resolve) => setImmediate(() => setImmediate(resolve, FREE_TURN)))
    expect(await abandoned(late)).to.deep.equal([0])
    expect(sent).to.equal(1)
  })

  for (const [code, isRetryable] of [
    ['budget_exhausted', false],
    ['storage_unavailable', true],
  ] as const)
    it(`a call that the budget refuses with ${code} makes no call, and ${isRetryable ? 'can' : 'cannot'} be retried`, async () => {
      refusal = { code, message: 'refused', reason: 'tokens_per_day', retryAfterSecs: 1 }
      const retry = !isRetryable && { retryAfterMs: 1_000 }
      const failure = { code, message: 'refused', reason: 'tokens_per_day', isRetryable, isFailover: false, ...retry }
      expect(await read(metered([text(2), FINISH]))).to.deep.equal([{ type: 'failure', failure }])
      expect([spent, closed]).to.deep.equal([[], 0])
    })

  it('is the same for the same provider of a tenant, and another one for another tenant', async () => {
    const plain = answering([FINISH])
    const provider = meter.provider(TENANT, plain)
    expect(meter.provider(TENANT, plain)).to.equal(provider)
    expect(provider).to.include({ type: 'openai', contextWindow: 7 })
    expect(provider.takesTools?.('m')).to.equal(false)
    expect(await provider.askWindow?.('m', new AbortController().signal)).to.equal(9)
    await read(meter.provider(OTHER, plain))
    expect(spent.map(({ tenant }) => tenant)).to.deep.equal([OTHER])
  })

  it('serves every role of a run, and the fallback', async () => {
    const routeOf = (model: string) => ({ provider: answering([FINISH]), model })
    const plain = { primary: routeOf('m'), fallback: undefined }
    const models: Models = {
      main: () => ({ primary: routeOf('m'), fallback: routeOf('spare') }),
      subAgents: () => plain,
      summaries: () => plain,
      priceOf: () => 0,
      windowOf: () => 9,
    }
    const ofTenant = meter.models(TENANT, models)
    const routes = [ofTenant.main(), ofTenant.subAgents(), ofTenant.summaries()]
    expect(routes.map(({ primary, fallback }) => [primary.model, fallback?.model])).to.deep.equal([
      ['m', 'spare'],
      ['m', undefined],
      ['m', undefined],
    ])
    for (const { primary, fallback } of routes)
      for (const route of [primary, fallback]) if (route) await read(route.provider)
    expect(spent).to.have.length(4)
    expect(ofTenant.windowOf('openai', 'm')).to.equal(9)
    expect(NO_METER.models(TENANT, models)).to.equal(models)
  })
})
