import { expect } from 'chai'
import { MODEL_LIMITS } from '../../../../shared/agent/providers/limits.ts'
import type { ModelPart } from '../../../../shared/agent/providers/port.ts'
import { call, DOWN, fails, OK, scripted, spare } from './retry-setup.ts'

const TIMEOUT = fails('timeout', 'first_byte_timeout')
const times = (count: number, answer: ModelPart[]) => Array.from({ length: count }, () => answer)

/** Calls a provider as one run after the other does, each with one request. `at` is the time in seconds. */
function createRuns(primary: ReturnType<typeof scripted>) {
  const fallback = scripted('anthropic')
  let now = 0
  const retry = { maxRequests: 1, now: () => now }
  return {
    fallback,
    async runAt(secs: number) {
      now = secs * 1_000
      const before = primary.models.length
      const { warnings, last } = await call(primary, { fallback: spare(fallback), retry })
      expect(last).to.include({ type: 'finish' })
      return { isCalled: primary.models.length > before, warning: warnings[0] }
    },
  }
}

describe('a provider that fails run after run', () => {
  it('D5.5: is skipped for 30 s after the third, and its fallback is called at once', async () => {
    const { runAt } = createRuns(scripted('openai', ...times(3, DOWN)))
    const calls = []
    for (const secs of [0, 1, 2, 3, 31, 33]) calls.push((await runAt(secs)).isCalled)
    expect(calls).to.deep.equal([true, true, true, false, false, true])
    expect((await runAt(34)).warning).to.equal(undefined)
  })

  it('the warning says that it is skipped', async () => {
    const { runAt } = createRuns(scripted('openai', ...times(3, DOWN)))
    for (const secs of [0, 0, 0]) await runAt(secs)
    expect((await runAt(1)).warning).to.deep.include({ code: 'provider_failover' })
    expect((await runAt(1)).warning?.detail).to.include({ reason: 'provider_skipped' })
  })

  it('is called again by one run after the 30 s, and skipped again when that fails', async () => {
    const { runAt } = createRuns(scripted('openai', ...times(4, DOWN)))
    for (const secs of [0, 0, 0]) await runAt(secs)
    const [first, second] = await Promise.all([runAt(40), runAt(40)])
    expect([first?.isCalled, second?.isCalled]).to.include(true)
    expect((await runAt(60)).isCalled).to.equal(false)
    expect((await runAt(71)).isCalled).to.equal(true)
  })

  it('counts from 0 again after a run that it served', async () => {
    const { runAt } = createRuns(scripted('openai', DOWN, DOWN, OK, DOWN, DOWN))
    for (let run = 0; run < 6; run++) expect((await runAt(0)).isCalled).to.equal(true)
  })

  it('is not skipped for requests that it rejected', async () => {
    const primary = scripted('openai', ...times(5, fails('provider_rejected', 'http_400', {})))
    for (let run = 0; run < 5; run++) await call(primary, { fallback: spare(scripted('anthropic')) })
    expect(primary.models).to.have.length(5)
  })

  it('is called all the same when there is no fallback', async () => {
    const primary = scripted('openai', ...times(4, DOWN))
    for (let run = 0; run < 4; run++) await call(primary, { retry: { maxRequests: 1 } })
    expect(primary.models).to.have.length(4)
  })
})

describe('the waiting for a provider', () => {
  it('D5.8: lasts 300 s for the first byte and between two', () => {
    expect(MODEL_LIMITS).to.include({ firstByteMs: 300_000, idleMs: 300_000 })
  })

  it('D5.8: a timeout is retried once', async () => {
    const provider = scripted('openai', ...times(3, TIMEOUT))
    const { types } = await call(provider)
    expect(types).to.deep.equal(['warning', 'failure'])
    const mixed = scripted('openai', DOWN, TIMEOUT, OK)
    expect((await call(mixed)).types.at(-1)).to.equal('finish')
    const twice = scripted('openai', TIMEOUT, DOWN, TIMEOUT, OK)
    expect((await call(twice)).last).to.have.nested.property('failure.code', 'timeout')
  })

  it('D5.5: a Retry-After above 30 s goes to the fallback at once, and is cut to 30 s without one', async () => {
    const limited = fails('provider_rate_limited', 'http_429', { isRetryable: true, retryAfterMs: 30_001 })
    const primary = scripted('openai', limited)
    const { warnings } = await call(primary, { fallback: spare(scripted('anthropic')) })
    expect(warnings.map(({ code }) => code)).to.deep.equal(['provider_failover'])
    const alone = await call(scripted('openai', limited), { retry: { maxRetryAfterMs: 3 } })
    expect(alone.warnings[0]?.detail).to.include({ delay_ms: 3 })
  })
})
