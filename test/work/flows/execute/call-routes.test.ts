import { expect } from 'chai'
import type { RunErrorCode } from '../../../../shared/kernel/events.ts'
import { CallRoutes, isProviderFailure } from '../../../../shared/work/flows/execute/call-routes.ts'

const PRIMARY = { instance: 'one', model: 'm1' }
const FALLBACK = { instance: 'two', model: 'm2' }
const FAILURE = { error: 'openai failed (HTTP 503): try again later', detail: 'http_503' }

describe('the route of an agent', () => {
  it("is the call's; a sub-agent may have a model, or an instance, of its own", () => {
    const routes = new CallRoutes(PRIMARY, FALLBACK)
    expect(routes.routeOf(undefined)).to.deep.equal({ route: PRIMARY, canSwitch: true })
    expect(routes.routeOf({ model: 'own' })).to.deep.equal({
      route: { instance: 'one', model: 'own' },
      canSwitch: true,
    })
    expect(routes.routeOf({ provider_instance: 'three' })).to.deep.equal({
      route: { instance: 'three', model: 'm1' },
      canSwitch: false,
    })
  })

  it('api.md "Named flows" 6: is the fallback after the switch, which is announced once', () => {
    const routes = new CallRoutes(PRIMARY, FALLBACK)
    expect(routes.switchAfter(PRIMARY, FAILURE)).to.deep.equal({
      type: 'warning',
      code: 'provider_failover',
      message: 'openai failed (HTTP 503): try again later; m2 of two takes the call',
      detail: { from: PRIMARY, to: FALLBACK, reason: 'http_503' },
    })
    expect(routes.switchAfter(PRIMARY, FAILURE)).to.equal(undefined)
    expect(routes.routeOf(undefined)).to.deep.equal({ route: FALLBACK, canSwitch: false })
    expect(routes.routeOf({ model: 'own' }), 'its own model is of the first instance').to.deep.equal({
      route: FALLBACK,
      canSwitch: false,
    })
    expect(routes.routeOf({ provider_instance: 'one', model: 'own' })).to.deep.equal({
      route: { instance: 'one', model: 'own' },
      canSwitch: false,
    })
  })

  it('does not change without a fallback', () => {
    const routes = new CallRoutes(PRIMARY, null)
    expect(routes.switchAfter(PRIMARY, FAILURE)).to.equal(undefined)
    expect(routes.routeOf(undefined)).to.deep.equal({ route: PRIMARY, canSwitch: false })
  })
})

describe('a failure for which the fallback is called', () => {
  const failures: [code: RunErrorCode, detail: string, isOne: boolean][] = [
    ['provider_unavailable', 'http_503', true],
    ['provider_rate_limited', 'http_429', true],
    ['provider_auth', 'http_401', true],
    ['timeout', 'first_byte_timeout', true],
    ['provider_rejected', 'out_of_credit', true],
    ['provider_rejected', 'http_400', false],
    ['context_too_long', 'context_too_long', false],
    ['content_filtered', 'content_filter', false],
    ['max_turns_exceeded', '', false],
    ['cancelled', '', false],
    ['worker_draining', '', false],
    ['internal', '', false],
  ]
  for (const [code, detail, isOne] of failures) {
    it(`api.md "Named flows" 6: ${code} ${detail} is ${isOne ? 'one' : 'none'}`, () => {
      expect(isProviderFailure({ code, detail })).to.equal(isOne)
    })
  }
})
