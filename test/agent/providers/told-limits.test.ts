import { expect } from 'chai'
import { readErrorDetails } from '../../../shared/agent/providers/failures/error-details.ts'
import { toldLimits } from '../../../shared/agent/providers/told-limits.ts'

const NOW = Date.parse('2026-11-29T10:00:00Z')
const read = (headers: Record<string, string>) => toldLimits((name) => headers[name], NOW)

describe('what a provider tells of its limits', () => {
  it("is read of OpenAI's headers, with a reset as a duration or in seconds", () => {
    const headers = {
      'x-ratelimit-limit-requests': '500',
      'x-ratelimit-remaining-requests': '499',
      'x-ratelimit-reset-requests': '120ms',
      'x-ratelimit-limit-tokens': '30000',
      'x-ratelimit-remaining-tokens': '29000',
      'x-ratelimit-reset-tokens': '1m2.5s',
    }
    expect(read(headers)).to.deep.equal({
      requests: { limit: 500, left: 499, resetMs: 120 },
      tokens: { limit: 30_000, left: 29_000, resetMs: 62_500 },
    })
    expect(read({ ...headers, 'x-ratelimit-reset-tokens': '7' }).tokens?.resetMs).to.equal(7_000)
  })

  it("is read of Anthropic's headers, with a reset as a time, and of its input tokens where it tells no others", () => {
    const headers = {
      'anthropic-ratelimit-input-tokens-limit': '40000',
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-input-tokens-reset': '2026-11-29T10:00:30Z',
    }
    expect(read(headers).tokens).to.deep.equal({ limit: 40_000, left: 0, resetMs: 30_000 })
    const tokens = { 'anthropic-ratelimit-tokens-limit': '9', 'anthropic-ratelimit-tokens-remaining': '8' }
    expect(read({ ...headers, ...tokens }).tokens).to.deep.equal({ limit: 9, left: 8, resetMs: undefined })
  })

  it('is nothing where headers are missing or no numbers', () => {
    const odd = { 'x-ratelimit-limit-tokens': 'many', 'x-ratelimit-remaining-tokens': '5' }
    for (const headers of [{}, odd, { 'x-ratelimit-limit-tokens': '5' }, { ...odd, 'x-ratelimit-limit-tokens': '0' }])
      expect(Object.values(read(headers)).filter(Boolean)).to.deep.equal([])
  })

  it("is read of the quota in Google's 429, but not of one for a day", () => {
    const told = (quotaId: string) =>
      readErrorDetails({
        statusCode: 429,
        responseBody: JSON.stringify({
          error: {
            code: 429,
            details: [{ violations: [{ quotaId, quotaMetric: 'input_token_count', quotaValue: '250000' }] }],
          },
        }),
      }).told
    expect(told('GenerateContentInputTokensPerModelPerMinute').tokens).to.deep.include({ limit: 250_000, left: 0 })
    expect(told('GenerateRequestsPerDay').tokens).to.equal(undefined)
  })
})
