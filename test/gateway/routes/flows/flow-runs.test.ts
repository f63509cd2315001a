import { expect } from 'chai'
import type { FlowRunSurface } from '../../../../services/gateway/routes/flows/flow-runs.ts'
import { AppError, invalidRequest, notFound } from '../../../../shared/kernel/errors.ts'
import type { FlowAnswer, FlowEvent } from '../../../../shared/kernel/events.ts'
import { newTraceId, runIdOf } from '../../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import type { StartedFlow } from '../../../../shared/work/flows/calls/calls.ts'
import type { WaitingFlow } from '../../../../shared/work/flows/transitions.ts'
import { openStream } from '../../../support/api-client.ts'
import { useFixture } from '../../../support/fixture.ts'
import { useContract } from '../../described.ts'
import { openFlows } from '../../flow-setup.ts'
import { framesOf, LIVE_RUN, refusalOf, useGateways } from '../../setup.ts'
import { Wire } from '../../wire.ts'

const TRACE = newTraceId()
const BODY = { input: { text: 'a' }, provider_instance: 'main' }
const AT = '2026-11-22T09:30:00.000Z'
const ANSWER: FlowAnswer = {
  flow_id: 'invoice-total',
  flow_version: 1,
  trace_id: TRACE,
  verdict: 'ok',
  output: { total: 120 },
  served_instance: 'main',
}
const EVENTS: FlowEvent[] = [
  { type: 'started', at: AT, trace_id: TRACE, flow_id: 'f', flow_version: 1, provider_instance: 'main', model: 'm' },
  { type: 'result', at: AT, ...ANSWER },
]

const STARTED: StartedFlow = {
  traceId: TRACE,
  isReplayed: false,
  answer: async () => ANSWER,
  frames: async () => framesOf(...EVENTS),
}

type Waits = PromiseWithResolvers<StartedFlow>
const LATE = new AppError('rate_limit', 'no room', { code: 'no_room', retryAfterSecs: 9 })

const unexpected = () => Promise.reject(new Error('not expected'))
const NO_BATCHES = {
  ...{ start: unexpected, get: unexpected, list: unexpected, cancel: unexpected, results: unexpected },
}

/** Calls that answer like this, whatever the flow. */
const callsOf = (started: Partial<StartedFlow>): FlowRunSurface =>
  execution({ start: async () => ({ ...STARTED, ...started }) })

const execution = (
  calls: FlowRunSurface['calls'],
  evaluator: FlowRunSurface['evaluator'] = { evaluate: unexpected },
): FlowRunSurface => ({ calls, evaluator, batches: NO_BATCHES, estimate: unexpected })

describe('runs of flows', () => {
  const start = useGateways()
  const described = useContract()
  const flows = useFixture(openFlows)

  const open = (parts: FlowRunSurface, subject = 'anonymous') =>
    start({ flows: flows().surface(parts), identify: async () => ({ tenant: DEFAULT_TENANT, subject }) })

  const run = '/flows/invoice-total/run'

  it('D25a: a stream that is repeated with its key goes on behind the event that the client has', async () => {
    const followed: number[] = []
    const { post } = await start({
      flows: flows().surface(callsOf({ isReplayed: true })),
      methods: {
        getRun: async () => ({ ...LIVE_RUN, event_count: 2 }),
        async followRun(_tenant, _id, after) {
          followed.push(after)
          return framesOf(...EVENTS.slice(after))
        },
      },
    })
    const headers = { accept: 'text/event-stream', 'idempotency-key': 'k', 'last-event-id': '1' }
    expect(await (await post(run, BODY, headers)).text()).to.match(/^: ok\nid: \d+\nevent: result\n/)
    expect(followed).to.deep.equal([1])
  })

  it('D6.5: answers with the JSON of api.md Named flows, X-Trace-ID and no X-Run-ID', async () => {
    const { post } = await open(callsOf({}))
    const response = await post(run, BODY)
    expect(response.headers.get('x-trace-id')).to.equal(TRACE)
    expect(response.headers.has('x-run-id')).to.equal(false)
    expect(response.headers.has('idempotency-replayed')).to.equal(false)
    expect(await described('POST', run, response)).to.deep.equal(ANSWER)
  })

  it('D54.8: with deadline_hours it answers with the ids alone, unless a stream is asked for', async () => {
    const { url, post } = await open(callsOf({ answer: () => expect.fail('it waits') }))
    const body = { ...BODY, deadline_hours: 24 }
    const response = await post(run, body)
    expect([response.status, response.headers.get('x-trace-id')]).to.deep.equal([202, TRACE])
    expect(await described('POST', run, response)).to.deep.equal({ trace_id: TRACE, run_id: runIdOf(TRACE) })
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json' }
    const stream = await openStream(url + run, { method: 'POST', headers, body: JSON.stringify(body) })
    expect((await stream.all()).at(-1)?.event).to.equal('result')
  })

  it('passes on the flow, the known fields of the body, the subject of the token and the key', async () => {
    const calls: unknown[] = []
    const spy: FlowRunSurface['calls'] = {
      start: async (...given) => {
        calls.push(given)
        return STARTED
      },
    }
    const { post } = await open(execution(spy), 'ada')
    const whole = { ...BODY, model: 'm', fallback_instance: 'spare', fallback_model: 'n' }
    await post(run, { ...whole, x: 1 })
    await post(run, BODY, { 'idempotency-key': 'k 1' })
    expect(calls).to.deep.equal([
      [DEFAULT_TENANT, 'invoice-total', { request: whole, subject: 'ada', idempotencyKey: undefined, readsEnd: true }],
      [DEFAULT_TENANT, 'invoice-total', { request: BODY, subject: 'ada', idempotencyKey: 'k 1', readsEnd: true }],
    ])
  })

  it('api.md Named flows 7: Accept: text/event-stream gets the events, with X-Trace-ID and X-Run-ID', async () => {
    const { url, line } = await open(callsOf({ isReplayed: true }))
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json' }
    const stream = await openStream(url + run, { method: 'POST', headers, body: JSON.stringify(BODY) })
    expect((await stream.all()).map(({ event }) => event)).to.deep.equal(['started', 'result'])
    expect(stream.runId).to.equal(runIdOf(TRACE))
    expect(stream.response.headers.get('x-trace-id')).to.equal(TRACE)
    expect(stream.response.headers.get('idempotency-replayed')).to.equal('true')
    expect(await line(({ msg }) => msg === 'request')).to.include({ trace_id: TRACE, run_id: runIdOf(TRACE) })
  })

  for (const [how, ends, last] of [
    ['its events when its turn comes', (starting: Waits) => starting.resolve(STARTED), 'result'],
    ['the error of one that was too late', (starting: Waits) => starting.reject(LATE), 'error'],
  ] as const)
    it(`D54.5: a stream whose start waits says its place, and then has ${how}; it names no run before`, async () => {
      const starting: Waits = Promise.withResolvers()
      const wait: WaitingFlow['wait'] = { standing: { place: 3, expectedStart: undefined } }
      const { url } = await open(
        execution({
          start(_tenant, _name, { onWait }) {
            onWait?.({ traceId: TRACE, wait })
            return starting.promise
          },
        }),
      )
      const headers = { accept: 'text/event-stream', 'content-type': 'application/json' }
      const body = JSON.stringify({ ...BODY, wait_secs: 60 })
      const stream = await openStream(url + run, { method: 'POST', headers, body })
      expect(await stream.next()).to.deep.include({ id: 0, event: 'waiting', data: { place: 3, expected_start: null } })
      ends(starting)
      const end = (await stream.all()).at(-1)
      expect(end?.event).to.equal(last)
      if (last === 'error')
        expect(end?.data).to.deep.include({ code: 'no_room', status: 429, retry_after_secs: 9, trace_id: TRACE })
      expect(stream.response.headers.get('x-trace-id')).to.equal(TRACE)
      expect(stream.response.headers.has('x-run-id')).to.equal(false)
    })

  const accepts: [string, boolean][] = [
    ['text/event-stream', true],
    ['Text/Event-Stream', true],
    ['text/event-stream, */*', true],
    ['text/event-stream, application/json', true],
    ['application/json;q=0.5, text/event-stream', true],
    ['*/*', false],
    ['text/*', false],
    ['application/json', false],
    ['application/json, text/event-stream', false],
    ['text/event-stream;q=0', false],
    ['text/html', false],
  ]
  for (const [accept, isStream] of accepts) {
    it(`Accept: ${accept} gets ${isStream ? 'events' : 'JSON'}`, async () => {
      const { post } = await open(callsOf({}))
      const response = await post(run, BODY, { accept })
      await response.text()
      const type = isStream ? 'text/event-stream' : 'application/json; charset=utf-8'
      expect(response.headers.get('content-type')).to.equal(type)
    })
  }

  it('D6.6: an answer of an earlier request carries Idempotency-Replayed, and so does its failure', async () => {
    const failure = new AppError('upstream', 'main failed', { code: 'provider_unavailable', traceId: TRACE })
    for (const answer of [async () => ANSWER, () => Promise.reject(failure)]) {
      const { post } = await open(callsOf({ isReplayed: true, answer }))
      const response = await post(run, BODY)
      expect(response.headers.get('idempotency-replayed')).to.equal('true')
      expect(response.headers.get('x-trace-id')).to.equal(TRACE)
      await described('POST', run, response)
    }
  })

  it('D6.5: a refusal carries X-Trace-ID when the flow was found, in both forms an HTTP error', async () => {
    for (const accept of ['application/json', 'text/event-stream']) {
      const refusals: [AppError, number, string | null][] = [
        [invalidRequest('no such instance', { param: '/provider_instance', traceId: TRACE }), 400, TRACE],
        [new AppError('conflict', 'used', { code: 'idempotency_mismatch' }), 409, null],
        [new AppError('unavailable', 'no executor', { traceId: TRACE, retryAfterSecs: 5 }), 503, TRACE],
        [notFound('there is no published flow'), 404, null],
      ]
      for (const [refusal, status, traceId] of refusals) {
        const { post } = await open(execution({ start: () => Promise.reject(refusal) }))
        const response = await post(run, BODY, { accept })
        expect(response.status).to.equal(status)
        expect(response.headers.get('x-trace-id')).to.equal(traceId)
        await described('POST', run, response)
      }
    }
  })

  it('a client that leaves ends the wait for the answer, and is logged as 499 and not as an error', async () => {
    const [waiting, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const answer = (signal: AbortSignal) => {
      const { promise, reject } = Promise.withResolvers<FlowAnswer>()
      signal.addEventListener('abort', () => {
        reject(signal.reason)
        ended.resolve()
      })
      waiting.resolve()
      return promise
    }
    const { get, url, line, lines } = await open(callsOf({ answer }))
    const reader = new AbortController()
    const headers = { 'content-type': 'application/json' }
    const gone = fetch(url + run, { method: 'POST', headers, body: JSON.stringify(BODY), signal: reader.signal }).catch(
      (cause: Error) => cause.name,
    )
    await waiting.promise
    reader.abort()
    expect(await gone).to.equal('AbortError')
    await ended.promise
    expect(await line(({ msg }) => msg === 'request')).to.include({ status: 499 })
    await (await get('/health')).text() // By now the handler has ended.
    expect(lines.filter(({ level }) => level === 'error')).to.deep.equal([])
  })

  it('an answer that was sent aborts nothing', async () => {
    const signals: AbortSignal[] = []
    const answer = async (signal: AbortSignal) => {
      signals.push(signal)
      return ANSWER
    }
    const { post, line } = await open(callsOf({ answer }))
    await (await post(run, BODY, { connection: 'close' })).text()
    await line(({ msg }) => msg === 'request')
    expect(signals.map(({ aborted }) => aborted)).to.deep.equal([false])
  })

  it('a client that leaves while its run is being started ends the wait for the answer at once', async () => {
    const [starting, left, waited] = [0, 1, 2].map(() => Promise.withResolvers<unknown>())
    const answer = async (signal: AbortSignal) => {
      waited?.resolve(signal.aborted)
      return ANSWER
    }
    const startLate = async () => {
      starting?.resolve(undefined)
      await left?.promise
      return { ...STARTED, answer }
    }
    const { post, port, line } = await open(execution({ start: startLate }))
    const wire = await Wire.open(port)
    const body = JSON.stringify(BODY)
    const headers = ['Host: 127.0.0.1', 'Content-Type: application/json', `Content-Length: ${body.length}`]
    wire.send(`POST /v1${run} HTTP/1.1`, ...headers, '', body)
    await starting?.promise
    wire.socket.destroy()
    await line(({ msg }) => msg === 'request')
    left?.resolve(undefined)
    expect(await waited?.promise).to.equal(true)
    expect((await post(run, BODY)).status).to.equal(200)
  })

  it('a fault while a client waits is a 500 that is logged', async () => {
    const { post, line } = await open(callsOf({ answer: () => Promise.reject(new Error('a bug')) }))
    const response = await post(run, BODY)
    expect(response.status).to.equal(500)
    expect(response.headers.get('x-trace-id')).to.equal(TRACE)
    await described('POST', run, response)
    expect(await line(({ level }) => level === 'error')).to.have.nested.property('cause.message', 'a bug')
  })

  const wrong: [string, object, string][] = [
    [run, {}, '/input'],
    [run, { ...BODY, input: [] }, '/input'],
    [run, { ...BODY, input: 'text' }, '/input'],
    [run, { input: {} }, '/provider_instance'],
    [run, { ...BODY, provider_instance: '' }, '/provider_instance'],
    [run, { ...BODY, provider_instance: '../x' }, '/provider_instance'],
    [run, { ...BODY, model: null }, '/model'],
    [run, { ...BODY, fallback_instance: 'spare' }, '/fallback_model'],
    [run, { ...BODY, fallback_model: 'm' }, '/fallback_instance'],
    ['/flows/x/evaluate', { limit: 0 }, '/limit'],
    ['/flows/x/evaluate', { limit: 21 }, '/limit'],
    ['/flows/x/evaluate', { limit: 1.5 }, '/limit'],
    ['/flows/x/evaluate', { provider_instance: 1 }, '/provider_instance'],
  ]
  for (const [path, body, param] of wrong) {
    it(`D2.4: POST ${path} ${JSON.stringify(body)} is 400 and names ${param}`, async () => {
      const { post } = await open(execution({ start: () => Promise.reject(new Error('not expected')) }))
      const response = await post(path, body)
      expect(response.status).to.equal(400)
      expect(((await described('POST', path, response)) as { error: object }).error).to.include({ param })
    })
  }

  it('api.md Named flows 4: without a master key runs and evaluations are 503, and definitions can be edited', async () => {
    const { get, post } = await start({ flows: flows().surface() })
    for (const path of [run, '/flows/x/evaluate']) {
      const response = await post(path, BODY)
      expect(response.status).to.equal(503)
      expect(await refusalOf(response)).to.include({ type: 'unavailable_error', code: 'config_disabled' })
    }
    expect((await get('/flows/summarize')).status).to.equal(200)
  })

  it('evaluates with the body, which is optional, the subject, and a signal that ends with the client', async () => {
    const calls: unknown[] = []
    const report = {
      flow_id: 'x',
      version: 2,
      published_version: 1,
      pass_rate: 1,
      published_pass_rate: 0.5,
      cost_usd: 0,
      published_cost_usd: 0,
      latency_ms_p50: 1,
      published_latency_ms_p50: 2,
      runs: [],
    }
    const evaluator: FlowRunSurface['evaluator'] = {
      async evaluate(_tenant, name, options, { subject, signal }) {
        calls.push([name, options, subject, signal.aborted])
        return report
      },
    }
    const { post } = await open(execution({ start: () => Promise.reject(new Error('not expected')) }, evaluator), 'ada')
    const path = '/flows/x/evaluate'
    expect(await described('POST', path, await post(path))).to.deep.equal(report)
    await post(path, { limit: 5, provider_instance: 'main', model: 'm', x: 1 })
    expect(calls).to.deep.equal([
      ['x', {}, 'ada', false],
      ['x', { limit: 5, provider_instance: 'main', model: 'm' }, 'ada', false],
    ])
  })
})
