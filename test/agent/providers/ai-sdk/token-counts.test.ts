import { expect } from 'chai'
import { toUsage } from '../../../../shared/agent/providers/ai-sdk/parts.ts'

describe('the token counts of a provider package', () => {
  const usageOf = (input: number | undefined, output: number | undefined, cached?: number) =>
    toUsage({
      inputTokens: { total: input, noCache: undefined, cacheRead: cached, cacheWrite: undefined },
      outputTokens: { total: output, text: undefined, reasoning: undefined },
    })

  it('D5.8: are missing where there are none, or where one is no whole number from 0', () => {
    for (const [input, output] of [
      [undefined, undefined],
      [0, 0],
      [-1e9, 4],
      [10, -1],
      [10, 0.5],
      [1e308, 4],
      [Number.NaN, 4],
    ])
      expect(usageOf(input, output)).to.equal(undefined)
    expect(usageOf(10, undefined, 4)).to.deep.equal({ input: 10, cacheRead: 4, cacheWrite: 0 })
    expect(usageOf(10, 4, -5)).to.deep.equal({ input: 10, output: 4, cacheRead: 0, cacheWrite: 0 })
  })
})
