import { expect } from 'chai'
import type { Usage } from '../../shared/providers/port.ts'
import { createPrices, createWindows } from '../../shared/providers/prices.ts'

const usage = (fields: Partial<Usage>): Usage => ({ input: 0, cacheRead: 0, cacheWrite: 0, output: 0, ...fields })

const MILLION = 1_000_000

describe('the price of a turn', () => {
  const priceOf = createPrices(
    new Map([
      ['mine', { input: 2, output: 10, cache_read: 0.5, cache_write: 4 }],
      ['plain', { input: 3, output: 6 }],
      ['gpt-4o', { input: 100, output: 100 }],
    ]),
  )

  it("D1.3: MODEL_PRICES count per million tokens, the cache's apart", () => {
    const turn = usage({ input: MILLION, cacheRead: 400_000, cacheWrite: 100_000, output: 200_000 })
    expect(priceOf('openai-compatible', 'mine', turn)).to.be.closeTo(0.5 * 2 + 0.4 * 0.5 + 0.1 * 4 + 0.2 * 10, 1e-9)
    expect(priceOf('ollama', 'plain', turn)).to.be.closeTo(3 + 0.2 * 6, 1e-9)
  })

  it('D1.3: MODEL_PRICES go before the catalogue', () => {
    expect(priceOf('openai', 'gpt-4o', usage({ input: MILLION }))).to.equal(100)
  })

  it('D4.10: the catalogue knows the models of the great providers, and that cached tokens are part of the input', () => {
    const none = createPrices(new Map())
    expect(none('openai', 'gpt-4o', usage({ input: MILLION }))).to.equal(2.5)
    const cached = none('openai', 'gpt-4o', usage({ input: MILLION, cacheRead: MILLION })) ?? 0
    expect(cached).to.be.within(0.1, 2)
    const written = none('anthropic', 'claude-sonnet-4-20250514', usage({ input: 1_000, cacheWrite: 1_000 })) ?? 0
    expect(written).to.be.closeTo((1_000 * 3.75) / MILLION, 1e-9)
    expect(none('google', 'gemini-2.5-pro', usage({ output: 1_000 }))).to.be.above(0)
    expect(none('openai-compatible', 'deepseek-chat', usage({ input: 1_000 }))).to.be.above(0)
  })

  it('D4.10: the price of an unknown model is unknown, not 0', () => {
    expect(priceOf('openai', 'test-model', usage({ input: 1 }))).to.equal(undefined)
    expect(priceOf('openai', 'constructor', usage({ input: 1 }))).to.equal(undefined)
  })

  it('the demo and Ollama are known to cost nothing', () => {
    expect(priceOf('demo', 'demo', usage({ input: 5, output: 5 }))).to.equal(0)
    expect(priceOf('ollama', 'llama3.1', usage({ input: 5, output: 5 }))).to.equal(0)
  })
})

describe('the context window of a model', () => {
  const ROWS: [type: string, model: string, window: number | undefined][] = [
    ['openai', 'gpt-4o', 128_000],
    ['anthropic', 'claude-sonnet-4-20250514', 200_000],
    ['openai-compatible', 'gpt-4o', 128_000],
    ['openai', 'test-model', undefined],
    ['openai', 'constructor', undefined],
    ['demo', 'gpt-4o', undefined],
    ['ollama', 'gpt-4o', undefined],
  ]
  for (const [type, model, window] of ROWS) {
    it(`D5.6: ${model} of ${type} has ${window === undefined ? 'an unknown window' : `a window of ${window} tokens`}`, () => {
      expect(createWindows()(type, model)).to.equal(window)
    })
  }
})
