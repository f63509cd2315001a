import { expect } from 'chai'
import { call, DOWN, fails, logged, scripted, spare, start } from './retry-setup.ts'

describe('the fallback', () => {
  it('D5.5: takes the turn after the last retry, with a provider_failover warning', async () => {
    const [primary, fallback] = [scripted('openai', DOWN, DOWN, DOWN), scripted('anthropic')]
    const { types, warnings } = await call(primary, { fallback: spare(fallback) })
    expect(types).to.deep.equal(['warning', 'warning', 'warning', 'served_by', 'text_delta', 'text_end', 'finish'])
    expect(warnings[2]).to.deep.include({
      code: 'provider_failover',
      detail: {
        from: { provider: 'openai', model: 'big' },
        to: { provider: 'anthropic', model: 'spare' },
        reason: 'http_503',
      },
    })
    expect(fallback.models).to.deep.equal(['spare'])
  })

  it('D5.5: is called at once when the account is out of credit', async () => {
    const primary = scripted('openai', fails('provider_rejected', 'out_of_credit', { isFailover: true }))
    const { warnings, last } = await call(primary, { fallback: spare(scripted('anthropic')) })
    expect(warnings.map(({ code }) => code)).to.deep.equal(['provider_failover'])
    expect(last).to.include({ type: 'finish' })
    expect(primary.models).to.have.length(1)
  })

  it('is not called when the request itself was rejected', async () => {
    const fallback = scripted('anthropic')
    await call(scripted('openai', fails('context_too_long', 'context_too_long', {})), { fallback: spare(fallback) })
    expect(fallback.models).to.be.empty
  })

  it('D5.5: is retried like the primary', async () => {
    const fallback = scripted('anthropic', DOWN)
    const { warnings, last } = await call(scripted('openai', DOWN, DOWN, DOWN), { fallback: spare(fallback) })
    expect(warnings.map(({ code }) => code)).to.deep.equal([
      'transport_retrying',
      'transport_retrying',
      'provider_failover',
      'transport_retrying',
    ])
    expect(last).to.include({ type: 'finish' })
  })

  it("when both fail, the call ends with the fallback's failure, and its message includes the primary's", async () => {
    const fallback = scripted('anthropic', fails('provider_auth', 'http_401', {}))
    const { last } = await call(scripted('openai', DOWN, DOWN, DOWN), { fallback: spare(fallback) })
    expect(last).to.have.nested.include({ type: 'failure', 'failure.code': 'provider_auth' })
    expect(last)
      .to.have.nested.property('failure.message')
      .that.match(/it says http_401 .*it says http_503/)
  })

  it('the warning says which model takes the turn, and served_by names its route', async () => {
    const fallback = spare(scripted('anthropic'))
    const { parts, warnings } = await call(scripted('openai', fails('provider_unavailable', 'x')), {
      fallback,
      retry: { maxRequests: 1 },
    })
    expect(warnings[0]?.message).to.equal('it says x; spare of anthropic takes the turn')
    expect(parts[1]).to.deep.equal({ type: 'served_by', route: fallback })
  })

  it("the primary's last stream is closed before the fallback is called", async () => {
    const log: string[] = []
    const primary = logged('openai', log, DOWN, DOWN, DOWN)
    await call(primary, { fallback: spare(logged('anthropic', log)), retry: { maxRequests: 1 } })
    expect(log).to.deep.equal(['openai 1 opens', 'openai 1 closes', 'anthropic 1 opens', 'anthropic 1 closes'])
  })

  it('is not called when the call was aborted during a retry of the primary', async () => {
    const caller = new AbortController()
    const fallback = scripted('anthropic')
    const options = { fallback: spare(fallback), signal: caller.signal, retry: { baseDelayMs: 60_000 } }
    const types: string[] = []
    for await (const { type } of start(scripted('openai', DOWN), options)) {
      types.push(type)
      setImmediate(() => caller.abort())
    }
    expect(types).to.deep.equal(['warning'])
    expect(fallback.models).to.be.empty
  })

  it('ends without a last part when the call is aborted during a retry of the fallback', async () => {
    const caller = new AbortController()
    const options = { fallback: spare(scripted('anthropic', DOWN)), signal: caller.signal }
    const codes: unknown[] = []
    const retry = { maxRequests: 2, baseDelayMs: 0 }
    for await (const part of start(scripted('openai', DOWN, DOWN), { ...options, retry })) {
      codes.push('code' in part ? part.code : part.type)
      if (codes.length === 4) caller.abort()
    }
    expect(codes).to.deep.equal(['transport_retrying', 'provider_failover', 'served_by', 'transport_retrying'])
  })
})
