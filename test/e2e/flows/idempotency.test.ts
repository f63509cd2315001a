import { expect } from 'chai'
import { eventsOf, nextCall, REQUEST, recordOf, streamFlow, traceOf } from '../../support/flow-streams.ts'
import { answerOf, DEFINITION, GOOD, useFlows } from '../../support/flows.ts'
import { runIsForgotten } from '../../support/forgotten-run.ts'
import { inBothForms, type Reply } from '../../support/product.ts'
import { until } from '../../support/until.ts'

const RESUME_SECS = 1

inBothForms('Idempotency-Key of flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form, { RUN_RESUME_SECS: String(RESUME_SECS) })
  let name = ''
  let keys = 0
  before(async () => {
    name = await bench.publish(DEFINITION)
  })

  const newKey = () => ({ 'idempotency-key': `key-${keys++}` })

  const run = (key: object, body: object = {}, flow = name) =>
    bench.call('POST', `/flows/${flow}/run`, { ...REQUEST, ...body }, { ...key })

  const isReplayed = ({ headers }: { headers: Headers }) => headers.get('idempotency-replayed') === 'true'

  /** The number of requests that the provider gets meanwhile. */
  const callsDuring = async (work: () => Promise<unknown>) => {
    const before = bench.main.requests.length
    await work()
    return bench.main.requests.length - before
  }

  it('D6.6: requests with one key at the same time, through all gateways, are one execution with one answer', async () => {
    const gate = Promise.withResolvers<void>()
    const key = newKey()
    bench.main.answer([{ hold: gate.promise }, { text: GOOD }])
    let replies: Reply[] = []
    const calls = await callsDuring(async () => {
      const waiting = Array.from({ length: 6 }, () => run(key))
      await until(() => bench.main.openRequests(), { what: 'the provider to be called' })
      gate.resolve()
      replies = await Promise.all(waiting)
    })
    expect(calls).to.equal(1)
    expect(new Set(replies.map(({ text }) => text)).size).to.equal(1)
    expect(new Set(replies.map(traceOf)).size).to.equal(1)
    expect(replies.filter(isReplayed)).to.have.length(5)
    expect(answerOf(replies[0] as Reply)).to.deep.include({ verdict: 'ok', output: { answer: 'yes' } })
  })

  it('D6.6: after the end the same request gets the stored answer, in whatever order its fields are', async () => {
    const key = newKey()
    const flow = await bench.publish({ ...DEFINITION, input_schema: { type: 'object' } })
    bench.main.answer(GOOD)
    const first = await run(key, { input: { text: 'hello', page: 1 } }, flow)
    expect(isReplayed(first)).to.equal(false)
    const calls = await callsDuring(async () => {
      for (const input of [
        { text: 'hello', page: 1 },
        { page: 1, text: 'hello' },
      ]) {
        const again = await run(key, { input }, flow)
        expect(again.text).to.equal(first.text)
        expect(traceOf(again)).to.equal(traceOf(first))
        expect(isReplayed(again)).to.equal(true)
      }
    })
    expect(calls).to.equal(0)
    expect((await recordOf(bench, traceOf(first))).idempotency_key).to.equal(key['idempotency-key'])
  })

  it('streams join the execution of their key, while it goes on and after its end', async () => {
    const gate = Promise.withResolvers<void>()
    const key = newKey()
    bench.main.answer([{ hold: gate.promise }, { text: GOOD }])
    const called = nextCall(bench.main)
    const first = await streamFlow(bench, name, {}, key)
    await called
    const second = await streamFlow(bench, name, {}, key)
    const synchronous = run(key)
    gate.resolve()
    const frames = await first.all()
    expect(eventsOf(frames)).to.deep.equal(['started', 'progress', 'result'])
    expect(await second.all()).to.deep.equal(frames)
    const third = await streamFlow(bench, name, {}, key)
    expect(await third.all()).to.deep.equal(frames)
    expect([first, second, third].map(({ response }) => isReplayed(response))).to.deep.equal([false, true, true])
    expect(new Set([first, second, third].map(({ runId }) => runId)).size).to.equal(1)
    const { at: _at, ...result } = frames.at(-1)?.data ?? {}
    expect(answerOf(await synchronous)).to.deep.equal(result)
  })

  it('a run goes on while one of the clients of its key is there', async () => {
    const key = newKey()
    const gate = Promise.withResolvers<void>()
    bench.main.answer([{ hold: gate.promise }, { text: GOOD }], [{ hang: true }])
    const called = nextCall(bench.main)
    const leaver = await streamFlow(bench, name, {}, key)
    await called
    const joined = run(key)
    const abandonedCall = nextCall(bench.main)
    const abandoned = await streamFlow(bench, name)
    const { closedByClient } = await abandonedCall
    leaver.leave()
    abandoned.leave()
    await closedByClient
    gate.resolve()
    const answer = answerOf(await joined)
    expect(answer).to.include({ verdict: 'ok', trace_id: traceOf(leaver.response) })
  })

  it('a stream replays the record when the run itself is forgotten', async () => {
    const key = newKey()
    bench.main.answer([{ tool: 'TodoWrite', input: { todos: [] } }], GOOD)
    const flow = await bench.publish({ ...DEFINITION, tools: ['TodoWrite'] })
    const first = await streamFlow(bench, flow, {}, key)
    const frames = await first.all()
    await runIsForgotten(bench, first.runId)
    const again = await streamFlow(bench, flow, {}, key)
    expect(await again.all()).to.deep.equal(frames)
    expect([again.runId, isReplayed(again.response)]).to.deep.equal([first.runId, true])
  })
})
