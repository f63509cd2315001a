import { expect } from 'chai'
import { collectGarbage } from '../../../../scripts/bench/garbage.ts'
import { callModel } from '../../../../shared/agent/providers/failures/failover.ts'
import { RETRY_POLICY } from '../../../../shared/agent/providers/failures/retry.ts'
import type { FailureCode, ModelPart } from '../../../../shared/agent/providers/port.ts'
import { until } from '../../../support/until.ts'
import { never } from '../ai-sdk/setup.ts'
import { call, DOWN, fails, logged, OK, scripted, spare, start } from './retry-setup.ts'

const limited = (retryAfterMs: number) =>
  fails('provider_rate_limited', 'http_429', { isRetryable: true, retryAfterMs })

describe('the retry of a model call', () => {
  it('D5.5: at most 3 requests are made, and each retry is announced by transport_retrying', async () => {
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

  it('D5.5: after the third request the call ends with the last failure', async () => {
    const provider = scripted('openai', DOWN, DOWN, fails('timeout', 'idle_timeout'))
    const { types, last } = await call(provider)
    expect(types).to.deep.equal(['warning', 'warning', 'failure'])
    expect(last).to.have.nested.property('failure.code', 'timeout')
    expect(provider.models).to.have.length(3)
  })

  it('D5.5: a failure that is not retryable is final', async () => {
    const provider = scripted('openai', fails('provider_rejected', 'http_400', {}))
    expect((await call(provider)).types).to.deep.equal(['failure'])
  })

  it('D5.5: a failure after the first part of an answer is final', async () => {
    for (const seen of [
      { type: 'text_delta', text: 'so' },
      { type: 'thinking_delta', text: 'hm' },
    ] as ModelPart[]) {
      const provider = scripted('openai', [seen, ...DOWN])
      const { types } = await call(provider, { fallback: spare(scripted('anthropic')) })
      expect(types).to.deep.equal([seen.type, 'failure'])
      expect(provider.models).to.have.length(1)
    }
  })

  it('keeps nothing of the call but its answer once that has begun', async () => {
    const begin = async () => {
      const request = { messages: [{ role: 'user' as const, text: 'hi' }], tools: [], stopSequences: [] }
      const primary = { provider: scripted('openai'), model: 'big' }
      const answer = callModel({ primary, fallback: undefined, request, signal: never() })
      return { first: await answer.next(), answer, held: new WeakRef(request) }
    }
    const { first, answer, held } = await begin()
    expect(first.value).to.deep.equal({ type: 'text_delta', text: 'well' })
    const isForgotten = () => {
      collectGarbage()
      return held.deref() === undefined
    }
    await until(isForgotten, { what: 'the request to be forgotten', withinMs: 5_000 })
    expect((await answer.next()).value).to.deep.equal({ type: 'text_end' })
  })

  const CATEGORIES: [FailureCode, string, string][] = [
    ['provider_rate_limited', 'http_429', 'rate_limit'],
    ['provider_unavailable', 'http_500', 'server_error'],
    ['provider_unavailable', 'stream_error', 'server_error'],
    ['provider_unavailable', 'connection_reset', 'network'],
    ['provider_unavailable', 'not_http_at_all', 'network'],
    ['provider_unavailable', 'truncated', 'network'],
    ['timeout', 'first_byte_timeout', 'timeout'],
  ]
  for (const [code, reason, category] of CATEGORIES) {
    it(`api.md "Events": the category of ${reason} is ${category}`, async () => {
      const { warnings } = await call(scripted('openai', fails(code, reason)))
      expect(warnings[0]).to.include({ category, reason })
    })
  }

  it('D5.5: Retry-After is honoured up to a limit', async () => {
    const { warnings } = await call(scripted('openai', limited(12), limited(90_000)), {
      retry: { maxRetryAfterMs: 20 },
    })
    expect(warnings.map(({ detail }) => detail['delay_ms'])).to.deep.equal([12, 20])
  })

  it('D5.5: half of the backoff is random', async () => {
    const { warnings } = await call(scripted('openai', DOWN, DOWN), { retry: { baseDelayMs: 8, random: () => 0 } })
    expect(warnings.map(({ detail }) => detail['delay_ms'])).to.deep.equal([4, 8])
  })

  it('aborting during the wait ends the call at once without a last part', async () => {
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

  it('leaving the iteration closes the stream of the provider', async () => {
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

  it('D5.5: by default there are 3 requests, a backoff of 500 ms, and a Retry-After of at most 30 s', () => {
    expect(RETRY_POLICY).to.deep.include({ maxRequests: 3, baseDelayMs: 500, maxRetryAfterMs: 30_000 })
    expect(RETRY_POLICY.random()).to.be.within(0, 1)
  })

  const DELAYS: [retryAfterMs: number, random: number, delayMs: number][] = [
    [0, 0, 250],
    [0, 0.5, 375],
    [0, 1, 500],
    [499, 1, 500],
    [501, 1, 501],
    [29_999, 1, 29_999],
    [30_000, 1, 30_000],
    [30_001, 1, 30_000],
  ]
  for (const [retryAfterMs, random, delayMs] of DELAYS) {
    it(`D5.5: a Retry-After of ${retryAfterMs} ms and a random value of ${random} lead to a first wait of ${delayMs} ms`, async () => {
      expect(await firstDelay(retryAfterMs, random)).to.equal(delayMs)
    })
  }

  it('the warning repeats the failure and says when the next request is made', async () => {
    const { warnings } = await call(scripted('openai', DOWN))
    expect(warnings[0]?.message).to.equal('it says http_503; trying again in 2 ms')
  })

  it('the stream of a failed attempt is closed before the warning that announces the retry', async () => {
    const log: string[] = []
    for await (const { type } of start(logged('openai', log, DOWN, DOWN))) if (type === 'warning') log.push(type)
    const attempt = (number: number) => [`openai ${number} opens`, `openai ${number} closes`]
    expect(log).to.deep.equal([...attempt(1), 'warning', ...attempt(2), 'warning', ...attempt(3)])
  })

  it('leaving the iteration at the warning makes no further request', async () => {
    const log: string[] = []
    for await (const { type } of start(logged('openai', log, DOWN))) {
      expect(type).to.equal('warning')
      break
    }
    expect(log).to.deep.equal(['openai 1 opens', 'openai 1 closes'])
  })

  it('a provider whose iterator has no `return` is retried, and can be left', async () => {
    let count = 0
    const stream = () => {
      const parts = (count++ === 0 ? DOWN : OK)[Symbol.iterator]()
      const next = async (): Promise<IteratorResult<ModelPart>> => parts.next()
      return { [Symbol.asyncIterator]: () => ({ next }) }
    }
    const types: string[] = []
    for await (const { type } of start({ type: 'openai', stream })) {
      types.push(type)
      if (type === 'text_delta') break
    }
    expect(types).to.deep.equal(['warning', 'text_delta'])
  })

  it('the iteration is over after its `return`', async () => {
    const parts = start(scripted('openai'))
    await parts.next()
    expect(await parts.return?.()).to.deep.equal({ done: true, value: undefined })
    expect(await parts.next()).to.deep.equal({ done: true, value: undefined })
  })

  it('an answer without any part, as after an abort, ends the call', async () => {
    const provider = scripted('openai', [])
    expect((await call(provider, { fallback: spare(scripted('anthropic')) })).types).to.be.empty
    expect(provider.models).to.have.length(1)
  })
})

/** The wait before the second request with the default policy, read from the warning. The wait itself is left. */
async function firstDelay(retryAfterMs: number, random: number): Promise<unknown> {
  const policy = { baseDelayMs: RETRY_POLICY.baseDelayMs, random: () => random }
  for await (const part of start(scripted('openai', limited(retryAfterMs)), { retry: policy })) {
    return part.type === 'warning' ? part.detail['delay_ms'] : part.type
  }
  return undefined
}
