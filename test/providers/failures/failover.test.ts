import { expect } from 'chai'
import { call, DOWN, fails, scripted } from './retry-setup.ts'

describe('the fallback', () => {
  it('D5.5: takes the turn when the retries are used up, with a provider_failover warning', async () => {
    const [primary, fallback] = [scripted('openai', DOWN, DOWN, DOWN), scripted('anthropic')]
    const { types, warnings } = await call(primary, { fallback })
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

  it('D5.5: is asked at once when the account is out of credit', async () => {
    const primary = scripted('openai', fails('provider_rejected', 'out_of_credit', { isFailover: true }))
    const { warnings, last } = await call(primary, { fallback: scripted('anthropic') })
    expect(warnings.map(({ code }) => code)).to.deep.equal(['provider_failover'])
    expect(last).to.include({ type: 'finish' })
    expect(primary.models).to.have.length(1)
  })

  it('is not asked when the request itself was rejected', async () => {
    const fallback = scripted('anthropic')
    await call(scripted('openai', fails('context_too_long', 'context_too_long', {})), { fallback })
    expect(fallback.models).to.be.empty
  })

  it('D5.5: is retried like the primary', async () => {
    const fallback = scripted('anthropic', DOWN)
    const { warnings, last } = await call(scripted('openai', DOWN, DOWN, DOWN), { fallback })
    expect(warnings.map(({ code }) => code)).to.deep.equal([
      'transport_retrying',
      'transport_retrying',
      'provider_failover',
      'transport_retrying',
    ])
    expect(last).to.include({ type: 'finish' })
  })

  it("both failing is the fallback's failure, which tells the primary's too", async () => {
    const fallback = scripted('anthropic', fails('provider_auth', 'http_401', {}))
    const { last } = await call(scripted('openai', DOWN, DOWN, DOWN), { fallback })
    expect(last).to.have.nested.property('failure.code', 'provider_auth')
    expect(last)
      .to.have.nested.property('failure.message')
      .that.match(/it says http_401 .*it says http_503/)
  })
})
