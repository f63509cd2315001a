import { expect } from 'chai'
import type { FailureCode, ModelPart } from '../../../shared/providers/port.ts'
import { call, DOWN, fails, OK, scripted, start } from './retry-setup.ts'

const limited = (retryAfterMs: number) =>
  fails('provider_rate_limited', 'http_429', { isRetryable: true, retryAfterMs })

describe('a model call that fails', () => {
  it('D5.5: is made again, 3 requests in all, each announced by transport_retrying', async () => {
    const provider = scripted('openai', DOWN, DOWN, OK)
    const { types, warnings } = await call(provider)
    expect(types).to.deep.equal(['warning', 'warning', 'text_delta', 'text_end', 'finish'])
    expect(provider.models).to.deep.equal(['big', 'big', 'big'])
    expect(warnings[0]).to.deep.include({
      code: 'transport_retrying',
      category: 'server_error',
      reason: 'http_503',
      detail: { attempt: 1, category: 'server_error', reason: 'http_503', delay_ms: 2 },
    })
    expect(warnings[1]?.detail).to.include({ attempt: 2, delay_ms: 4 })
  })

  it('D5.5: gives up after the third request with the last failure', async () => {
    const provider = scripted('openai', DOWN, DOWN, fails('timeout', 'idle_timeout'))
    const { types, last } = await call(provider)
    expect(types).to.deep.equal(['warning', 'warning', 'failure'])
    expect(last).to.have.nested.property('failure.code', 'timeout')
    expect(provider.models).to.have.length(3)
  })

  it('D5.5: is not made again when another request cannot help', async () => {
    const provider = scripted('openai', fails('provider_rejected', 'http_400', {}))
    expect((await call(provider)).types).to.deep.equal(['failure'])
  })

  it('D5.5: is not repeated once anything of the answer has been seen', async () => {
    for (const seen of [
      { type: 'text_delta', text: 'so' },
      { type: 'thinking_delta', text: 'hm' },
    ] as ModelPart[]) {
      const provider = scripted('openai', [seen, ...DOWN])
      const { types } = await call(provider, { fallback: scripted('anthropic') })
      expect(types).to.deep.equal([seen.type, 'failure'])
      expect(provider.models).to.have.length(1)
    }
  })

  const CATEGORIES: [FailureCode, string, string][] = [
    ['provider_rate_limited', 'http_429', 'rate_limit'],
    ['provider_unavailable', 'http_500', 'server_error'],
    ['provider_unavailable', 'connection_reset', 'network'],
    ['provider_unavailable', 'truncated', 'network'],
    ['timeout', 'first_byte_timeout', 'timeout'],
  ]
  for (const [code, reason, category] of CATEGORIES) {
    it(`api.md Events: the category of ${reason} is ${category}`, async () => {
      const { warnings } = await call(scripted('openai', fails(code, reason)))
      expect(warnings[0]).to.include({ category, reason })
    })
  }

  it('D5.5: Retry-After is honoured, up to a limit', async () => {
    const { warnings } = await call(scripted('openai', limited(12), limited(90_000)), {
      retry: { maxRetryAfterMs: 20 },
    })
    expect(warnings.map(({ detail }) => detail['delay_ms'])).to.deep.equal([12, 20])
  })

  it('D5.5: the wait is jittered: half of it is chance', async () => {
    const { warnings } = await call(scripted('openai', DOWN, DOWN), { retry: { baseDelayMs: 8, random: () => 0 } })
    expect(warnings.map(({ detail }) => detail['delay_ms'])).to.deep.equal([4, 8])
  })

  it('aborting during the wait ends the call at once and without a word', async () => {
    const caller = new AbortController()
    const provider = scripted('openai', DOWN)
    const types: string[] = []
    for await (const { type } of start(provider, { signal: caller.signal, retry: { baseDelayMs: 60_000 } })) {
      types.push(type)
      setImmediate(() => caller.abort())
    }
    expect(types).to.deep.equal(['warning'])
    expect(provider.models).to.have.length(1)
  })

  it('leaving the iteration leaves the provider', async () => {
    let isLeft = false
    async function* stream() {
      try {
        yield* OK
      } finally {
        isLeft = true
      }
    }
    for await (const part of start({ type: 'openai', stream })) {
      expect(part.type).to.equal('text_delta')
      break
    }
    expect(isLeft).to.equal(true)
  })
})
