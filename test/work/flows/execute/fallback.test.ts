import { expect } from 'chai'
import { AppError, notFound } from '../../../../shared/kernel/errors.ts'
import type { FlowEvent } from '../../../../shared/kernel/events.ts'
import type { Answer } from '../../../support/model-server/model-server.ts'
import { Bench, flowOf, GOOD, INPUT, isFrom, isFromMain, lastOf } from './setup.ts'

const PRIMARY = { instance: 'one', model: 'm1' }
const FALLBACK = { instance: 'two', model: 'm2' }

const warningsOf = (events: FlowEvent[], code: string) =>
  events.flatMap((event) => (event.type === 'warning' && event.code === code ? [event] : []))

describe('the fallback of a call', () => {
  let bench: Bench

  beforeEach(async () => {
    bench = await Bench.start('one', 'two', 'three')
    bench.server('two').otherwise(() => GOOD)
  })

  afterEach(async () => {
    await bench.close()
    expect(bench.bugs).to.deep.equal([])
  })

  const switching: [what: string, answer: Answer, reason: string, requests: number][] = [
    ['a refused key', { status: 401 }, 'http_401', 1],
    ['an account out of credit', { status: 402 }, 'out_of_credit', 1],
    ['a rate limit that lasts', { status: 429 }, 'http_429', 3],
    ['an outage that lasts', { status: 503 }, 'http_503', 3],
    ['a connection that breaks each time', { resetBeforeHeaders: true }, 'connection_reset', 3],
    ['a silent provider', { hangBeforeHeaders: true }, 'first_byte_timeout', 2],
    ['a failure within the answer', [{ text: '{"ans' }, { error: { status: 503 } }], 'http_503', 1],
    ['an answer without an end', [{ text: GOOD }, { truncate: true }], 'truncated', 1],
  ]
  for (const [what, answer, reason, requests] of switching) {
    it(`api.md "Named flows" 6: takes the call after ${what}`, async () => {
      if (reason === 'first_byte_timeout') bench.limits.set('one', { firstByteMs: 300 })
      bench.server().otherwise(() => answer)
      const { events, outcome } = await bench.play({ fallback: FALLBACK })
      expect(outcome).to.deep.include({ status: 'ok', output: { answer: 'yes' }, served_instance: 'two', turns: 1 })
      expect(bench.server().requests).to.have.length(requests)
      const [warning, ...more] = warningsOf(events, 'provider_failover')
      expect(warning).to.deep.include({ agent: 'main', detail: { from: PRIMARY, to: FALLBACK, reason } })
      expect(more).to.deep.equal([])
      expect(warningsOf(events, 'transport_retrying')).to.have.length(requests - 1)
      expect(events.at(-1)).to.include({ type: 'progress', model: 'm2', turn_number: 1 })
    })
  }

  it('D56.2: takes the call at once while the model of the call rests, and not when it rests itself', async () => {
    bench.server().otherwise(() => ({ status: 402 }))
    const kept = new Map(['one', 'two'].map((name) => [name, bench.open(name)]))
    const play = () =>
      bench.play({ fallback: FALLBACK }, { openModel: async (name) => kept.get(name) ?? bench.open(name) })
    for (let calls = 0; calls < 3; calls++) await play()
    const before = bench.server().requests.length
    const { events, outcome } = await play()
    expect(outcome).to.deep.include({ status: 'ok', served_instance: 'two' })
    const [{ detail } = { detail: {} }] = warningsOf(events, 'provider_failover')
    expect(detail).to.deep.equal({ from: PRIMARY, to: FALLBACK, reason: 'provider_skipped' })
    expect(bench.server().requests).to.have.length(before)
    bench.server('two').otherwise(() => ({ status: 402 }))
    for (let calls = 0; calls < 3; calls++) await play()
    expect(bench.server().requests).to.have.length(before)
    await play()
    expect(bench.server().requests, 'both rest').to.have.length(before + 1)
  })

  const final: [what: string, answer: Answer, code: string][] = [
    ['a rejected request', { status: 422 }, 'provider_rejected'],
    ['a conversation that is too long', { contextTooLong: true }, 'context_too_long'],
    ['a filtered answer', { steps: [{ text: 'x' }], finish: 'content_filter' }, 'content_filtered'],
    ['too many turns', [{ tool: 'Nothing' }], 'max_turns_exceeded'],
  ]
  for (const [what, answer, code] of final) {
    it(`api.md "Named flows" 6: is not called after ${what}`, async () => {
      bench.server().otherwise(() => answer)
      const { events, outcome } = await bench.play({ fallback: FALLBACK })
      expect(outcome).to.deep.include({ status: 'error', output: null, served_instance: null })
      expect(outcome.error).to.include({ status: 502, type: 'upstream_error', code })
      expect(outcome.error?.message).to.match(/^the main agent failed at instance one: /)
      expect(bench.server('two').requests).to.deep.equal([])
      expect(warningsOf(events, 'provider_failover')).to.deep.equal([])
    })
  }

  it('without one a failure of the provider is final', async () => {
    bench.server().answer({ status: 401 })
    const { outcome } = await bench.play()
    expect(outcome.error).to.include({ status: 502, type: 'upstream_error', code: 'provider_auth' })
  })

  it('its own failure is final, and names it', async () => {
    bench.server().otherwise(() => ({ status: 401 }))
    bench.server('two').otherwise(() => ({ status: 402 }))
    const { outcome } = await bench.play({ fallback: FALLBACK })
    expect(outcome.error?.message).to.match(/^the main agent failed at instance two: .*out of credit/)
    expect([bench.server().requests.length, bench.server('two').requests.length]).to.deep.equal([1, 1])
  })

  it('the agent starts again from the beginning: a new conversation, and all its tries', async () => {
    bench.server().answer({ steps: [{ text: 'no' }], usage: { input: 5, output: 1 } }, { status: 401 })
    bench.server('two').otherwise((_request, index) => (index < 2 ? 'no' : GOOD))
    const { events, outcome } = await bench.play({ fallback: FALLBACK })
    expect(outcome).to.include({ status: 'ok', served_instance: 'two', turns: 4 })
    const [first] = bench.server('two').requests
    expect(first && lastOf(first)).to.equal(JSON.stringify({ input: INPUT, sub_outputs: {} }))
    const turns = events.flatMap((event) => (event.type === 'progress' ? [`${event.turn_number} ${event.model}`] : []))
    expect(turns).to.deep.equal(['1 m1', '2 m2', '3 m2', '4 m2'])
  })

  it('agents that fail likewise join the one switch, and later ones use it at once; those that succeed stay', async () => {
    const switched = Promise.withResolvers<void>()
    bench
      .server()
      .otherwise((request) =>
        isFrom('lucky', request) ? [{ hold: switched.promise }, { text: GOOD }] : { status: 401 },
      )
    bench.server('two').otherwise((_request, index) => {
      if (index === 1) switched.resolve()
      return GOOD
    })
    const { events, outcome } = await bench.play({ ...flowOf(['lucky', 'a1', 'a2']), fallback: FALLBACK })
    expect(outcome).to.include({ status: 'ok', served_instance: 'two' })
    expect(warningsOf(events, 'provider_failover')).to.have.length(1)
    expect(bench.server().requests, 'the main agent never calls it').to.have.length(3)
    expect(bench.server().requests.some(isFromMain)).to.equal(false)
    expect(bench.server('two').requests.map(({ model }) => model)).to.deep.equal(['m2', 'm2', 'm2'])
    expect(bench.server('two').requests.some((request) => isFrom('lucky', request))).to.equal(false)
  })

  it('a sub-agent with an instance of its own never switches', async () => {
    bench.server('three').otherwise(() => ({ status: 401 }))
    const { outcome } = await bench.play({
      ...flowOf(['critic'], { provider_instance: 'three' }),
      fallback: FALLBACK,
    })
    expect(outcome.error?.message).to.match(/^sub-agent critic failed at instance three: /)
    expect(bench.server('two').requests).to.deep.equal([])
  })

  it('takes the call when the instance or its key is gone', async () => {
    const gone = [
      notFound('no instance is named one'),
      new AppError('unavailable', 'no key', { code: 'secret_missing' }),
    ]
    for (const cause of gone) {
      const { events, outcome } = await bench.play(
        { fallback: FALLBACK },
        { openModel: (instance) => (instance === 'one' ? Promise.reject(cause) : bench.open(instance)) },
      )
      expect(outcome).to.include({ status: 'ok', served_instance: 'two' })
      expect(warningsOf(events, 'provider_failover')[0]?.message).to.equal(`${cause.message}; m2 of two takes the call`)
    }
    const { outcome } = await bench.play({}, { openModel: () => Promise.reject(gone[0]) })
    expect(outcome.error).to.deep.equal({
      status: 502,
      type: 'upstream_error',
      code: 'provider_auth',
      message: 'the main agent failed at instance one: no instance is named one',
    })
  })
})
