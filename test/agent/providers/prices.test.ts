import { createRequire } from 'node:module'
import { expect } from 'chai'
import type { Usage } from '../../../shared/agent/providers/port.ts'
import { createPrices, createWindows } from '../../../shared/agent/providers/prices.ts'

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

  it('D1.3: MODEL_PRICES are per million tokens, with prices of their own for cached tokens', () => {
    const turn = usage({ input: MILLION, cacheRead: 400_000, cacheWrite: 100_000, output: 200_000 })
    expect(priceOf({ type: 'openai-compatible' }, 'mine', turn)).to.be.closeTo(
      0.5 * 2 + 0.4 * 0.5 + 0.1 * 4 + 0.2 * 10,
      1e-9,
    )
    expect(priceOf({ type: 'ollama' }, 'plain', turn)).to.be.closeTo(3 + 0.2 * 6, 1e-9)
  })

  it('D1.3: MODEL_PRICES go before the catalogue', () => {
    expect(priceOf({ type: 'openai' }, 'gpt-4o', usage({ input: MILLION }))).to.equal(100)
  })

  it('a price of the instance replaces every other', () => {
    const prices = new Map([['plain', { input: 7, output: 0 }]])
    expect(priceOf({ type: 'ollama', prices }, 'plain', usage({ input: MILLION }))).to.equal(7)
  })

  it('D4.10: the catalogue has the models of the large providers, and counts cached tokens as a part of the input', () => {
    const none = createPrices(new Map())
    expect(none({ type: 'openai' }, 'gpt-4o', usage({ input: MILLION }))).to.equal(2.5)
    const cached = none({ type: 'openai' }, 'gpt-4o', usage({ input: MILLION, cacheRead: MILLION })) ?? 0
    expect(cached).to.be.within(0.1, 2)
    const written =
      none({ type: 'anthropic' }, 'claude-sonnet-4-20250514', usage({ input: 1_000, cacheWrite: 1_000 })) ?? 0
    expect(written).to.be.closeTo((1_000 * 3.75) / MILLION, 1e-9)
    expect(none({ type: 'google' }, 'gemini-2.5-pro', usage({ output: 1_000 }))).to.be.above(0)
    expect(none({ type: 'openai-compatible' }, 'deepseek-chat', usage({ input: 1_000 }))).to.be.above(0)
  })

  it('D4.10: the price of an unknown model is unknown, not 0', () => {
    expect(priceOf({ type: 'openai' }, 'test-model', usage({ input: 1 }))).to.equal(undefined)
    expect(priceOf({ type: 'openai' }, 'constructor', usage({ input: 1 }))).to.equal(undefined)
  })

  it('a model is compared with the patterns of the catalogue once, also when its price is unknown', () => {
    const none = createPrices(new Map())
    const windowOf = createWindows()
    const turn = usage({ input: MILLION })
    for (const model of ['gpt-4o', 'of-nobody']) {
      const prices = [none({ type: 'openai' }, model, turn), windowOf('openai', model)]
      const restore = failOnSearch()
      const again = [none({ type: 'openai' }, model, turn), windowOf('openai', model)]
      restore()
      expect(again).to.deep.equal(prices)
    }
  })

  it('cached tokens without a price of their own cost as much as other input', () => {
    const turn = usage({ input: MILLION, cacheRead: 400_000, cacheWrite: 100_000 })
    expect(priceOf({ type: 'openai-compatible' }, 'plain', turn)).to.be.closeTo(3, 1e-9)
    const half = createPrices(new Map([['half', { input: 2, output: 0, cache_read: 1 }]]))
    expect(half({ type: 'openai' }, 'half', turn)).to.be.closeTo(0.4 * 1 + 0.6 * 2, 1e-9)
  })

  it('a count of cached tokens above the input does not lower the price', () => {
    const turn = usage({ input: 100, cacheRead: MILLION })
    expect(priceOf({ type: 'openai' }, 'mine', turn)).to.be.closeTo(0.5, 1e-9)
    const catalogue = createPrices(new Map())
    expect(catalogue({ type: 'openai' }, 'gpt-4o', turn)).to.equal(
      catalogue({ type: 'openai' }, 'gpt-4o', { ...turn, input: MILLION }),
    )
    const both = usage({ input: 1, cacheRead: 500, cacheWrite: 500 })
    const whole = catalogue({ type: 'anthropic' }, 'claude-sonnet-4-20250514', { ...both, input: 1_000 })
    expect(catalogue({ type: 'anthropic' }, 'claude-sonnet-4-20250514', both)).to.equal(whole)
  })

  it('a price of 0 in MODEL_PRICES is a price, and also for a local provider MODEL_PRICES goes first', () => {
    const free = createPrices(
      new Map([
        ['gpt-4o', { input: 0, output: 0 }],
        ['llama3.1', { input: 1, output: 0 }],
      ]),
    )
    expect(free({ type: 'openai' }, 'gpt-4o', usage({ input: 5 }))).to.equal(0)
    expect(free({ type: 'ollama' }, 'llama3.1', usage({ input: MILLION }))).to.equal(1)
  })

  it('the type of the provider selects the catalogue, and an unknown type leaves it to the name of the model', () => {
    const none = createPrices(new Map())
    expect(none({ type: 'anthropic' }, 'gpt-4o', usage({ input: MILLION }))).to.equal(undefined)
    expect(none({ type: 'constructor' }, 'gpt-4o', usage({ input: MILLION }))).to.equal(2.5)
  })

  it('the demo and Ollama cost nothing', () => {
    expect(priceOf({ type: 'demo' }, 'demo', usage({ input: 5, output: 5 }))).to.equal(0)
    expect(priceOf({ type: 'ollama' }, 'llama3.1', usage({ input: 5, output: 5 }))).to.equal(0)
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

/** Makes every search of the whole catalogue throw, until it is restored. A call with a provider is no search. */
function failOnSearch(): () => void {
  const catalogue = createRequire(import.meta.url)('@pydantic/genai-prices') as typeof import('@pydantic/genai-prices')
  const { calcPrice } = catalogue
  const replace = (by: typeof calcPrice) => Object.assign(catalogue, { calcPrice: by })
  replace((tokens, model, options) => {
    if (!options?.provider) throw new Error(`${model} was searched for`)
    return calcPrice(tokens, model, options)
  })
  return () => void replace(calcPrice)
}
