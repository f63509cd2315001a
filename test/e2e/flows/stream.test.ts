import { expect } from 'chai'
import { runIdOf, traceIdOf } from '../../../shared/kernel/ids.ts'
import { callApi, initOf } from '../../support/api-client.ts'
import {
  endOf,
  eventsOf,
  nextCall,
  REQUEST,
  recordOf,
  runningRun,
  streamFlow,
  traceOf,
} from '../../support/flow-streams.ts'
import { answerOf, DEFINITION, GOOD, useFlows } from '../../support/flows.ts'
import { inBothForms } from '../../support/product.ts'
import { until } from '../../support/until.ts'

/** The only executor has room for two runs at a time. */
const ENV = { RUN_RESUME_SECS: '2', RUNS_PER_WORKER: '2' }

inBothForms('streams of flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form, ENV)
  let name = ''
  before(async () => {
    name = await bench.publish({ ...DEFINITION, tools: ['TodoWrite'] })
  })

  const follow = (runId: string, after: number) =>
    bench.product.stream(`/runs/${runId}/events`, undefined, { 'last-event-id': String(after) })

  it('api.md Named flows 7: a run is started, one progress for each turn, and the synchronous body as result', async () => {
    bench.main.answer([{ tool: 'TodoWrite', input: { todos: [] } }], GOOD)
    const stream = await streamFlow(bench, name)
    const frames = await stream.all()
    expect(eventsOf(frames)).to.deep.equal(['started', 'progress', 'progress', 'result'])
    const [started, ...turns] = frames.slice(0, -1).map(({ data }) => data)
    const trace_id = traceOf(stream.response)
    const flow = { flow_id: name, flow_version: 1, trace_id }
    expect(started).to.deep.include({ ...flow, provider_instance: 'main', model: 'test-model' })
    expect(turns.map(({ agent, turn_number, model }) => [agent, turn_number, model])).to.deep.equal([
      ['main', 1, 'test-model'],
      ['main', 2, 'test-model'],
    ])
    const { at, ...result } = frames.at(-1)?.data ?? {}
    expect(result).to.deep.equal({ ...flow, verdict: 'ok', output: { answer: 'yes' }, served_instance: 'main' })
    expect(at).to.equal((await recordOf(bench, trace_id)).ended_at)
    bench.main.answer(GOOD)
    const synchronous = answerOf(await bench.run(name))
    expect({ ...synchronous, trace_id }).to.deep.equal(result)
  })

  it('D4.5a: a client that reconnects with Last-Event-ID, also through another gateway, misses no event', async () => {
    const gate = Promise.withResolvers<void>()
    bench.main.answer([{ tool: 'TodoWrite', input: { todos: [] } }], [{ hold: gate.promise }, { text: GOOD }])
    const first = await streamFlow(bench, name)
    const { id } = await first.until('progress')
    first.leave()
    const second = await follow(first.runId, id)
    gate.resolve()
    const frames = [...first.frames, ...(await second.all())]
    expect(frames.map((frame) => frame.id)).to.deep.equal([1, 2, 3, 4])
    expect(eventsOf(frames)).to.deep.equal(['started', 'progress', 'progress', 'result'])
  })

  it('D4.5f: DELETE ends a stream and its model call at once', async () => {
    bench.main.answer([{ hang: true }])
    const called = nextCall(bench.main)
    const stream = await streamFlow(bench, name)
    const { closedByClient } = await called
    const { status, body } = await bench.call('DELETE', `/runs/${stream.runId}`)
    expect([status, body]).to.deep.equal([200, { status: 'cancelled' }])
    const last = (await stream.all()).at(-1)
    expect(last?.data).to.include({ code: 'cancelled', status: 409, trace_id: traceOf(stream.response) })
    await closedByClient
    expect(await endOf(bench, traceOf(stream.response))).to.nested.include({
      status: 'error',
      'error.type': 'conflict_error',
    })
    expect((await bench.call('GET', `/runs/${stream.runId}`)).body).to.include({ status: 'cancelled' })
  })

  it('D4.5f: DELETE gives a client that waits for the synchronous answer its answer at once', async () => {
    bench.main.answer([{ hang: true }])
    const called = nextCall(bench.main)
    const waiting = bench.run(name)
    const { closedByClient } = await called
    const runId = await runningRun(bench)
    expect((await bench.call('DELETE', `/runs/${runId}`)).status).to.equal(200)
    const { status, headers, body } = await waiting
    expect(status).to.equal(409)
    expect(body).to.nested.include({ 'error.type': 'conflict_error', 'error.code': 'cancelled' })
    expect(traceOf({ headers })).to.equal(traceIdOf(runId))
    await closedByClient
  })

  it('a run that waits for an executor is `waiting`, is cancelled without a model call, or starts when there is room', async () => {
    const hanging = []
    for (let i = 0; i < 2; i++) {
      bench.main.answer([{ hang: true }])
      const called = nextCall(bench.main)
      hanging.push(await streamFlow(bench, name))
      await called
    }
    const calls = bench.main.requests.length
    const cancelled = await streamFlow(bench, name)
    const later = await streamFlow(bench, name)
    for (const { runId } of [cancelled, later])
      expect((await bench.call('GET', `/runs/${runId}`)).body).to.include({ status: 'waiting' })
    expect((await bench.call('DELETE', `/runs/${cancelled.runId}`)).status).to.equal(200)
    const frames = await cancelled.all()
    expect(frames.map(({ event, data }) => [event, data['code'], data['status']])).to.deep.equal([
      ['error', 'cancelled', 409],
    ])
    expect(await endOf(bench, traceOf(cancelled.response))).to.include({ status: 'error', turns: 0 })
    bench.main.answer(GOOD)
    await bench.call('DELETE', `/runs/${hanging[0]?.runId}`)
    expect(eventsOf(await later.all())).to.deep.equal(['started', 'progress', 'result'])
    expect(bench.main.requests).to.have.length(calls + 1)
    await bench.call('DELETE', `/runs/${hanging[1]?.runId}`)
  })

  it('D4.5b: a run whose clients have left is aborted after RUN_RESUME_SECS with its model call, and ends as an error', async () => {
    bench.main.answer([{ hang: true }], [{ hang: true }])
    const streamed = nextCall(bench.main)
    const stream = await streamFlow(bench, name)
    const first = await streamed
    const awaited = nextCall(bench.main)
    const leaving = new AbortController()
    const init = { ...initOf('POST', REQUEST), signal: leaving.signal }
    const waiting = callApi(`${bench.product.url}/flows/${name}/run`, init).catch((cause: unknown) => cause)
    const second = await awaited
    const runId = await runningRun(bench)
    expect(runId).not.to.equal(stream.runId)
    stream.leave()
    leaving.abort()
    expect(await waiting).to.include({ name: 'AbortError' })
    await Promise.all([first.closedByClient, second.closedByClient])
    for (const traceId of [traceOf(stream.response), traceIdOf(runId)]) {
      expect(await endOf(bench, traceId)).to.nested.include({ status: 'error', 'error.type': 'conflict_error' })
      const isRecorded = async () => {
        const { status, body } = await bench.call('GET', `/runs/${runIdOf(traceId)}`)
        return status === 200 && (body as { code?: string }).code === 'cancelled'
      }
      await until(isRecorded, { what: 'the record of the run' })
    }
  })
})
