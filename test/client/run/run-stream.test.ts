import { expect } from 'chai'
import { z } from 'zod'
import { AgentEngine, type PermissionAsk } from '../../../shared/client/client.ts'
import { ConnectionFailed, RunFailed, RunLost } from '../../../shared/client/errors.ts'
import { type Answer, breakOff, fakeServer, json, refusal, type SentEvent, stream } from '../fake-server.ts'

const RUN = { 'x-run-id': 'run_1' }
const DONE_DATA = {
  total_input_tokens: 1,
  total_output_tokens: 2,
  total_tokens: 3,
  cost_usd: 0,
  turn_count: 1,
  stop_reason: 'end_turn',
}
const delta = (id: number, text: string): SentEvent => ({ id, event: 'text_delta', data: { text } })
const text = (id: number, whole: string): SentEvent => ({ id, event: 'text', data: { text: whole } })
const done = (id: number): SentEvent => ({ id, event: 'done', data: DONE_DATA })
const failed = (id: number, code: string): SentEvent => ({
  ...{ id, event: 'error', data: { error: 'it failed', code, detail: '', suggestion: 'wait', retryable: true } },
})
const ask = (id: number, name: string): SentEvent => ({
  ...{ id, event: 'permission_request', data: { id: name, tool_use_id: 'call_1', tool_name: 'Write', input: {} } },
})

/** A run that is started at a server with these answers. */
function runOn(...answers: Answer[]) {
  const { options, sent, paths } = fakeServer(answers)
  const engine = new AgentEngine(options)
  return { engine, run: engine.run({ prompt: 'hi' }, { idempotencyKey: 'k' }), sent, paths }
}
const streams =
  (...events: SentEvent[]): Answer =>
  () =>
    stream(events, RUN)

const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it has not failed'),
    (cause: unknown) => cause,
  )

describe('a run at the client', () => {
  it('starts when it is read, and has its id, its text and its usage', async () => {
    const { run, sent } = runOn(streams(delta(1, 'one'), text(2, 'one'), text(3, 'two'), done(4)))
    expect([sent.length, run.id]).to.deep.equal([0, undefined])
    expect(await run.result()).to.deep.equal({
      ...{ runId: 'run_1', output: 'one\n\ntwo', usage: DONE_DATA, stopReason: 'end_turn' },
    })
    expect([sent[0]?.path, sent[0]?.headers.get('idempotency-key')]).to.deep.equal(['/agent/run', 'k'])
    expect([run.id, run.lastEventId]).to.deep.equal(['run_1', 4])
  })

  it('D41.1: with a schema of zod, or a JSON Schema, its output is the value of the end, also null', async () => {
    const end = (output: unknown): SentEvent => ({ id: 2, event: 'done', data: { ...DONE_DATA, output } })
    const typed = (output: unknown) => streams(text(1, 'some text'), end(output))
    const { options, sent } = fakeServer([typed({ city: 'Oslo' }), typed([3]), typed(null)])
    const engine = new AgentEngine(options)
    const { output } = await engine.run({ prompt: 'hi', schema: z.object({ city: z.string() }) }).result()
    expect(output.city).to.equal('Oslo')
    const list = { type: 'array' }
    const { output: numbers } = await engine.run<number[]>({ prompt: 'hi', schema: list }).result()
    expect(numbers[0]).to.equal(3)
    expect((await engine.run({ prompt: 'hi', response_schema: list }).result()).output).to.equal(null)
    const [zod, ...plain] = sent.map(({ body }) => body as { response_schema: object })
    expect(zod?.response_schema).to.deep.include({ type: 'object', required: ['city'], additionalProperties: false })
    for (const body of plain) expect(body).to.deep.equal({ prompt: 'hi', response_schema: list })
  })

  it('D32.7a: leaves out the text of a turn that another server begins anew', async () => {
    const start = (id: number, turn: number): SentEvent => ({ id, event: 'turn_start', data: { turn_number: turn } })
    const recovered = { code: 'run_recovered', message: 'again', detail: { turn_number: 2 } }
    const events = [start(1, 1), text(2, 'kept'), start(3, 2), text(4, 'void'), delta(5, 'cut')]
    const { run } = runOn(
      streams(...events, { id: 90, event: 'warning', data: recovered }, start(91, 2), text(92, 'new'), done(93)),
    )
    expect((await run.result()).output).to.equal('kept\n\nnew')
  })

  it('is started once, and then resumed behind its last event', async () => {
    const { run, sent, paths } = runOn(streams(delta(1, 'a'), delta(2, 'b')), breakOff, streams(text(3, 'ab'), done(4)))
    const { output } = await run.result()
    expect(output).to.equal('ab')
    expect(paths()).to.deep.equal(['POST /agent/run', 'GET /runs/run_1/events', 'GET /runs/run_1/events'])
    expect(sent.map(({ headers }) => headers.get('last-event-id'))).to.deep.equal([null, '2', '2'])
  })

  it('shows its text as it comes, the rest of a block with its whole text, and a blank line between blocks', async () => {
    const events = [delta(1, ''), delta(2, 'on'), text(3, 'one'), text(4, 'two'), delta(5, 'x'), text(6, 'x'), done(7)]
    const { run } = runOn(streams(...events))
    const pieces: string[] = []
    for await (const piece of run.textStream()) pieces.push(piece)
    expect(pieces).to.deep.equal(['on', 'e', '\n\ntwo', '\n\nx'])
  })

  it('is read once for all who read it at the same time, and each sees every event', async () => {
    const { run, sent } = runOn(streams(delta(1, 'a'), text(2, 'a'), done(3)))
    const read = async () => {
      const ids: number[] = []
      for await (const { id } of run) ids.push(id)
      return ids
    }
    expect(await Promise.all([read(), read()])).to.deep.equal([
      [1, 2, 3],
      [1, 2, 3],
    ])
    expect(sent).to.have.length(1)
  })

  it('that fails shows its error as an event, and then throws it', async () => {
    const { run } = runOn(streams(delta(1, 'a'), failed(2, 'provider_auth')))
    const seen: string[] = []
    const cause = await failureOf(
      (async () => {
        for await (const { event } of run) seen.push(event)
      })(),
    )
    expect(seen).to.deep.equal(['text_delta', 'error'])
    expect(cause)
      .to.be.instanceOf(RunFailed)
      .with.include({ code: 'provider_auth', runId: 'run_1', suggestion: 'wait' })
    expect(await failureOf(run.result())).to.include({ code: 'provider_auth' })
  })

  it('that the server does not know any more is lost, and one of which only the record is left ends as that says', async () => {
    const lost = runOn(streams(delta(1, 'a')), () => refusal(404, 'not_found'))
    expect(await failureOf(lost.run.result()))
      .to.be.instanceOf(RunLost)
      .with.property('runId', 'run_1')
    const nothing: Answer = () => new Response(null, { status: 204 })
    const over = runOn(streams(delta(1, 'a')), nothing, () =>
      json({ run_id: 'run_1', status: 'error', code: 'worker_lost' }),
    )
    expect(await failureOf(over.run.result()))
      .to.be.instanceOf(RunFailed)
      .with.property('code', 'worker_lost')
    const record = { run_id: 'run_1', status: 'done', input_tokens: 7, output_tokens: 2, cost_usd: 0.5, turns: 3 }
    const good = runOn(streams(text(1, 'a')), nothing, () => json(record))
    const total = { total_input_tokens: 7, total_output_tokens: 2, total_tokens: 9, cost_usd: 0.5, turn_count: 3 }
    expect(await good.run.result()).to.deep.equal({
      ...{ runId: 'run_1', output: 'a', stopReason: 'end_turn' },
      usage: { ...total, stop_reason: 'end_turn' },
    })
  })

  it('that ends with its plan in the queue has the id of the plan, and no usage', async () => {
    const data = { plan_id: 'plan_1', note: 'n' }
    const { run } = runOn(streams(text(1, 'a'), { id: 2, event: 'plan_queued', data }))
    expect(await run.result()).to.deep.equal({
      ...{ runId: 'run_1', output: 'a', usage: null, stopReason: 'plan_queued', planId: 'plan_1', note: 'n' },
    })
  })

  it('whose id a browser was refused is found by its key, and without a key it cannot be resumed', async () => {
    const withoutId: Answer = () => stream([delta(1, 'a')])
    const { run, paths } = runOn(withoutId, streams(delta(1, 'a'), text(2, 'a'), done(3)))
    expect((await run.result()).runId).to.equal('run_1')
    expect(paths()).to.deep.equal(['POST /agent/run', 'POST /agent/run'])
    const { engine } = runOn(withoutId)
    const unnamed = engine.run({ prompt: 'hi' }, { idempotencyKey: null })
    expect(await failureOf(unnamed.result()))
      .to.be.instanceOf(ConnectionFailed)
      .with.property('message')
      .that.includes('X-Run-ID')
  })

  it('that is cancelled before it was started is never sent, and another is deleted at the server', async () => {
    const early = runOn()
    await early.run.cancel()
    expect(await failureOf(early.run.result()))
      .to.be.instanceOf(RunFailed)
      .with.property('code', 'cancelled')
    expect(early.sent).to.have.length(0)
    const { run, paths } = runOn(streams(delta(1, 'a')), () => new Response(null, { status: 204 }))
    await run.started()
    await run.cancel()
    expect(paths()).to.deep.equal(['POST /agent/run', 'DELETE /runs/run_1'])
  })

  it('tells its listeners of permission requests, which the end of the run settles', async () => {
    const { run } = runOn(
      streams(
        ask(1, 'perm_1'),
        ask(2, 'perm_2'),
        {
          ...{ id: 3, event: 'permission_resolved' },
          data: { id: 'perm_1', tool_use_id: 'call_1', tool_name: 'Write', allow: true, how: 'reply', reason: '' },
        },
        done(4),
      ),
    )
    const asks: string[] = []
    const known: (() => string | undefined)[] = []
    const stop = run.on('permission', (each) => {
      asks.push(each.id)
      known.push(() => each.resolution?.how)
    })
    const events: string[] = []
    run.on('event', ({ event }) => events.push(event))
    await run.result()
    stop()
    expect(asks).to.deep.equal(['perm_1', 'perm_2'])
    expect(known.map((how) => how())).to.deep.equal(['reply', 'ended'])
    expect(events).to.deep.equal(['permission_request', 'permission_request', 'permission_resolved', 'done'])
  })

  it('is answered at its session, for which a run that was started before is asked', async () => {
    const asks = streams(ask(1, 'perm_1'), done(2))
    const { options, paths } = fakeServer([
      ...[asks, () => json({ run_id: 'run_1', session_id: 's' }), () => json({})],
      ...[() => json({ session_id: 't' }), asks, () => json({})],
    ])
    const engine = new AgentEngine(options)
    const replies: Promise<boolean>[] = []
    const onPermission = (each: PermissionAsk) => replies.push(each.allow())
    await engine.runs.resume('run_1', { onPermission }).result()
    await Promise.all(replies)
    await (await engine.sessions.open('t')).send('hi', { onPermission }).result()
    expect(await Promise.all(replies)).to.deep.equal([true, true])
    expect(paths()).to.deep.equal([
      ...['GET /runs/run_1/events', 'GET /runs/run_1', 'POST /sessions/s/permissions/perm_1'],
      ...['POST /sessions', 'POST /sessions/t/messages', 'POST /sessions/t/permissions/perm_1'],
    ])
  })

  it('ends with the failure of a listener', async () => {
    const { run } = runOn(streams(delta(1, 'a'), delta(2, 'b')), streams(delta(3, 'c')), streams(done(4)))
    run.on('event', async () => {
      throw new Error('the listener has a bug')
    })
    expect(await failureOf(run.result())).to.have.property('message', 'the listener has a bug')
  })
})
