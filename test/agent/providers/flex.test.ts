import { expect } from 'chai'
import { callModel } from '../../../shared/agent/providers/failures/failover.ts'
import type { Caller, CountedUsage } from '../../../shared/agent/providers/port.ts'
import { createPrices } from '../../../shared/agent/providers/prices.ts'
import { oneByOne } from '../../../shared/kernel/async/batch.ts'
import type { ModelOptions } from '../../../shared/kernel/model-options.ts'
import { useModelServer } from '../../support/model-server/model-server.ts'
import { connect, never } from './ai-sdk/setup.ts'

const USAGE = { input: 1_000_000, output: 0 }
const MODELS = { 'openai behind a gateway': 'o4-mini', openai: 'gpt-5.1' } as const
const PRICES = new Map(Object.values(MODELS).map((model) => [model, { input: 8, output: 0 }]))

describe("OpenAI's flex tier", () => {
  const server = useModelServer({ perTest: true })
  beforeEach(async () => {
    server.otherwise(() => ({ steps: [{ text: 'ok' }], usage: USAGE }))
  })

  for (const dialect of ['openai behind a gateway', 'openai'] as const) {
    const model = MODELS[dialect]

    /** Calls the model as an engine does. Returns the tiers of its requests, the reasons of its warnings and what the answer cost. */
    const call = async (caller: Caller, options: ModelOptions = { flex: true }, limits = {}) => {
      const provider = await connect(dialect, server, limits, options)
      const before = server.requests.length
      const parts = callModel({
        primary: { provider, model, caller },
        fallback: undefined,
        request: { messages: [{ role: 'user', text: 'hi' }], tools: [], stopSequences: [] },
        signal: never(),
        retry: { baseDelayMs: 2 },
      })
      const reasons: unknown[] = []
      let usage: CountedUsage | undefined
      for await (const part of oneByOne(parts)) {
        if (part.type === 'warning') reasons.push(part.reason)
        if (part.type === 'finish') usage = part.usage
      }
      const cost = usage && createPrices(PRICES)(provider, model, { input: 0, output: 0, ...usage })
      const tiers = server.requests.slice(before).map(({ body }) => body['service_tier'])
      return { tiers, reasons, cost }
    }

    it(`D54.9: is asked for by the calls without haste of an instance of ${dialect} with the option, for half the price`, async () => {
      const later = (ms: number) => ({ priority: 'batch' as const, deadlineMs: Date.now() + ms })
      for (const caller of [{ priority: 'batch' as const }, later(3_600_000)])
        expect(await call(caller)).to.deep.equal({ tiers: ['flex'], reasons: [], cost: 4 })
      for (const caller of [{}, { priority: 'normal' as const }, later(60_000)])
        expect(await call(caller)).to.deep.equal({ tiers: [undefined], reasons: [], cost: 8 })
      expect(await call(later(3_600_000), {})).to.deep.include({ tiers: [undefined] })
    })

    it(`D54.9: a call that it has no room for, or does not answer in time, is made in the normal tier of ${dialect}, for the whole price`, async () => {
      server.answer({ status: 429, code: 'resource_unavailable', retryAfter: 20 })
      expect(await call({ priority: 'batch' })).to.deep.equal({
        tiers: ['flex', undefined],
        reasons: ['resource_unavailable'],
        cost: 8,
      })
      server.answer({ hangBeforeHeaders: true })
      const late = await call({ priority: 'batch' }, { flex: true }, { firstByteMs: 50 })
      expect(late).to.deep.equal({ tiers: ['flex', undefined], reasons: ['first_byte_timeout'], cost: 8 })
    })

    it(`D54.9: a model of ${dialect} that refuses it is called without it from then on`, async () => {
      server.answer({ status: 400, message: "Flex is not available for this model: 'service_tier'." })
      expect(await call({ priority: 'batch' })).to.deep.equal({ tiers: ['flex', undefined], reasons: [], cost: 8 })
    })
  }
})
