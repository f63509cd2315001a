import { expect } from 'chai'
import { createPrices, createWindows } from '../../../shared/agent/providers/prices.ts'

const MILLION = { input: 1_000_000, cacheRead: 0, cacheWrite: 0, output: 0 }

describe('a model with the name of its vendor', () => {
  const priceOf = createPrices(new Map())
  const windowOf = createWindows()

  for (const [type, model, price, window] of [
    ['openai-compatible', 'anthropic/claude-sonnet-4', 3, 1_000_000],
    ['openai-compatible', 'openai/gpt-4o', 2.5, 128_000],
    ['openai', 'openai/gpt-4o', 2.5, 128_000],
    ['openai-compatible', 'x-ai/grok-4', 3, 256_000],
    ['openai-compatible', 'google/gemini-2.5-pro', 1.25, 1_048_576],
    ['openai-compatible', 'anthropic/claude-opus-4.5:beta', 5, 200_000],
  ] as const) {
    it(`D4.10: ${model} at ${type} has a price and a window`, () => {
      expect(priceOf({ type }, model, MILLION)).to.be.closeTo(price, price)
      expect(windowOf(type, model)).to.be.within(Math.min(window, 128_000), 2_000_000)
    })
  }

  it('D4.10: the price of an unknown vendor or model is unknown, and MODEL_PRICES go first', () => {
    expect(priceOf({ type: 'openai-compatible' }, 'nobody/knows-me', MILLION)).to.equal(undefined)
    expect(windowOf('openai-compatible', 'nobody/knows-me')).to.equal(undefined)
    const own = createPrices(new Map([['openai/gpt-4o', { input: 7, output: 7 }]]))
    expect(own({ type: 'openai-compatible' }, 'openai/gpt-4o', MILLION)).to.equal(7)
  })
})
