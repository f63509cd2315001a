// Tests every resource of the client that sends one request: which one it is, and what it makes of the answer.
import { expect } from 'chai'
import {
  AgentEngine,
  ApiError,
  type CallOptions,
  ConnectionFailed,
  createEstimates,
  createFiles,
} from '../../../shared/client/client.ts'
import { type Answer, fakeServer, json, refusal, stream } from '../fake-server.ts'

const engineOn = (...answers: Answer[]) => {
  const { options, sent } = fakeServer(answers)
  return { engine: new AgentEngine(options), sent }
}
const ended = { id: 1, event: 'done', data: { stop_reason: 'end_turn' } }
const runs: Answer = () => stream([ended], { 'x-run-id': 'run_1' })

type Row = [
  call: (engine: AgentEngine, options: CallOptions) => unknown,
  request: string,
  body?: unknown,
  answer?: unknown,
  made?: unknown,
]
const ROWS: readonly Row[] = [
  [(it, options) => it.me(options), 'GET /me', undefined, { tenant: 't' }, { tenant: 't' }],
  [(it, options) => it.run({ prompt: 'hi' }, options).result(), 'POST /agent/run', { prompt: 'hi' }, runs],
  [
    (it, options) => it.runs.start({ prompt: 'hi' }, options),
    'POST /agent/run',
    { prompt: 'hi', background: true },
    { run_id: 'run_1' },
    'run_1',
  ],
  [(it, options) => it.runs.get('a/b', options), 'GET /runs/a%2Fb', undefined, { run_id: 'a' }, { run_id: 'a' }],
  [
    (it, options) => it.runs.resume('run_1', { after: 7, ...options }).result(),
    'GET /runs/run_1/events',
    undefined,
    () => stream([{ ...ended, id: 8 }]),
  ],
  [(it, options) => it.runs.steer('run_1', 'stop', options), 'POST /runs/run_1/steer', { prompt: 'stop' }],
  [(it, options) => it.runs.cancel('run_1', options), 'DELETE /runs/run_1'],
  [
    (it, options) => it.sessions.list({ limit: 2 }, options).all(),
    'GET /sessions?limit=2',
    undefined,
    { sessions: [1], next_cursor: null },
    [1],
  ],
  [
    async (it, options) => (await it.sessions.open('s', { messages: [{ role: 'user', content: 'a' }], ...options })).id,
    'POST /sessions',
    { session_id: 's', messages: [{ role: 'user', content: 'a' }] },
    { session_id: 's-1' },
    's-1',
  ],
  [
    async (it, options) => (await it.sessions.open(undefined, options)).id,
    'POST /sessions',
    {},
    { session_id: 's-1' },
    's-1',
  ],
  [
    (it, options) => it.flows.get('total', options),
    'GET /flows/total',
    undefined,
    { name: 'total' },
    { name: 'total' },
  ],
  [(it, options) => it.flows.list({}, options).all(), 'GET /flows', undefined, { flows: [], next_cursor: null }, []],
  [
    (it, options) => it.flows.run('total', { instance: 'main', input: { n: 1 } }, options),
    'POST /flows/total/run',
    { provider_instance: 'main', input: { n: 1 } },
    () => stream([{ id: 1, event: 'result', data: { verdict: 'ok', output: 2 } }], { 'x-run-id': 'run_1' }),
    { ok: true, verdict: 'ok', output: 2, problems: [] },
  ],
  [
    async (it, options) => (await it.plans.submit({ steps: [] }, options)).id,
    'POST /plans/submit',
    { steps: [] },
    { id: 'plan_1' },
    'plan_1',
  ],
  [
    (it, options) => it.plans.check({ steps: [] }, options),
    'POST /plans/check',
    { steps: [] },
    { waves: [] },
    { waves: [] },
  ],
  [
    (it, options) => it.plans.list({}, options).page('c'),
    'GET /plans?cursor=c',
    undefined,
    { plans: [1], next_cursor: 'd' },
    { plans: [1], items: [1], next_cursor: 'd' },
  ],
  [
    (it, options) => it.permissions.list(options).all(),
    'GET /permissions',
    undefined,
    { permissions: [], next_cursor: null },
    [],
  ],
  [(it, options) => it.permissions.get('p', options), 'GET /permissions/p', undefined, { id: 'p' }, { id: 'p' }],
  [
    (it, options) => it.permissions.decided({ since: '2026' }, options).all(),
    'GET /permissions?state=decided&since=2026',
    undefined,
    { permissions: [], next_cursor: null },
    [],
  ],
  [
    (it, options) => it.permissions.remembered(options).all(),
    'GET /permissions?state=remembered',
    undefined,
    { remembered: [], next_cursor: null },
    [],
  ],
  [
    (it, options) => it.permissions.reply('s', 'p', { allow: true }, options),
    'POST /sessions/s/permissions/p',
    { allow: true },
  ],
  [
    (it, options) => it.permissions.forget('s', 'Write', options),
    'DELETE /permissions/remembered?session_id=s&tool_name=Write',
  ],
  [(it, options) => it.permissions.forget('s', undefined, options), 'DELETE /permissions/remembered?session_id=s'],
  [
    (it, options) => it.usage({ by: 'day' }, options).all(),
    'GET /usage?by=day',
    undefined,
    { rows: [], next_cursor: null },
    [],
  ],
  [
    (it, options) => it.dispatches.get('trace_1', options),
    'GET /dispatches/trace_1',
    undefined,
    { trace_id: 't' },
    { trace_id: 't' },
  ],
  [
    (it, options) => createEstimates(it).run({ prompt: 'hi' }, options),
    'POST /agent/run?dry_run=true',
    { prompt: 'hi' },
  ],
  [
    (it, options) => createEstimates(it).flow('a/b', { input: {} } as never, options),
    'POST /flows/a%2Fb/run?dry_run=true',
    { input: {} },
  ],
  [(it, options) => createEstimates(it).plan({ steps: [] }, options), 'POST /plans/submit?dry_run=true', { steps: [] }],
  [(it, options) => it.raw.put('/config/engine', { body: {}, ...options }), 'PUT /config/engine', {}],
  [
    (it, options) => it.raw.patch('/sessions/{id}', { path: { id: 's' }, body: { title: 'a' }, ...options }),
    'PATCH /sessions/s',
    { title: 'a' },
  ],
  [(it, options) => it.plans.of('p/1').get(options), 'GET /plans/p%2F1', undefined, { steps: [] }, { steps: [] }],
  [(it, options) => it.plans.of('p').cancel(options), 'POST /plans/p/cancel'],
  [
    async (it, options) => (await it.plans.of('p').retry(options)).id,
    'POST /plans/p/retry',
    undefined,
    { id: 'plan_2' },
    'plan_2',
  ],
  [(it, options) => createFiles(it).delete('f', options), 'DELETE /files/f'],
]

describe('a resource of the client', () => {
  for (const [call, request, body, answer = {}, made] of ROWS)
    it(`sends ${request} for ${String(call).replaceAll(/\s+/g, ' ').slice(0, 60)}`, async () => {
      const { engine, sent } = engineOn(typeof answer === 'function' ? (answer as Answer) : () => json(answer))
      const result = await call(engine, { traceparent: '00-1-2-01' })
      expect(sent.map(({ method, path, body: of }) => [`${method} ${path}`, of])).to.deep.equal([[request, body]])
      expect(sent[0]?.headers.get('traceparent')).to.equal('00-1-2-01')
      if (made !== undefined) expect(result).to.deep.equal(made)
      if (made === undefined || typeof answer === 'function' || request === 'POST /plans/check') return
      const other = call(engineOn(() => json({ other: 1 })).engine, {})
      expect(await Promise.resolve(other).catch(String), 'of something else').to.match(/check the url/)
    })

  it('of a session sends its requests below the session', async () => {
    const { engine, sent } = engineOn(
      () => json({ session_id: 'a/b' }),
      ...[runs, runs, ...Array.from({ length: 5 }, (): Answer => () => json({ messages: [], next_cursor: null }))],
    )
    const chat = await engine.sessions.open('a/b')
    const options = { traceparent: '00-1-2-01' }
    await chat.send('hi', options).result()
    await chat.send({ prompt: 'hi', model: 'm' }, options).result()
    await chat.get(options)
    await chat.messages({ head: 'm1' }, options).all()
    await chat.fork('m1', 'c', options)
    await chat.rename('new', options)
    await chat.delete(options)
    const own = '/sessions/a%2Fb'
    expect(sent.slice(1).every(({ headers }) => headers.get('traceparent') === options.traceparent)).to.equal(true)
    expect(sent.slice(1).map(({ method, path, body }) => [method, path, body])).to.deep.equal([
      ['POST', `${own}/messages`, { prompt: 'hi' }],
      ['POST', `${own}/messages`, { prompt: 'hi', model: 'm' }],
      ['GET', own, undefined],
      ['GET', `${own}/messages?head=m1`, undefined],
      ['POST', `${own}/fork`, { at: 'm1', session_id: 'c' }],
      ['PATCH', own, { title: 'new' }],
      ['DELETE', own, undefined],
    ])
  })

  it('that starts something names it by a key, made at random unless given, and by none for null', async () => {
    const keyOf = async (start: (engine: AgentEngine) => unknown, answer: object) => {
      const { engine, sent } = engineOn(() => json(answer))
      await start(engine)
      return sent[0]?.headers.get('idempotency-key')
    }
    for (const start of [
      (options?: object) => keyOf((it) => it.runs.start({ prompt: 'hi' }, options), { run_id: 'r' }),
      (options?: object) => keyOf((it) => it.runs.steer('r', 'hi', options), {}),
      (options?: object) => keyOf((it) => it.plans.submit({ steps: [] }, options), { id: 'p' }),
    ]) {
      expect(await start()).to.match(/^auto-\d+-\d+-\d+-\d+$/)
      expect(await start({ idempotencyKey: 'k' })).to.equal('k')
      expect(await start({ idempotencyKey: null })).to.equal(null)
    }
  })

  it('joins a session that exists, and throws what else is refused', async () => {
    const conflict: Answer = () => refusal(409, 'conflict')
    expect((await engineOn(conflict).engine.sessions.open('s')).id).to.equal('s')
    const refused: [Answer, string?][] = [[conflict], [() => refusal(403, 'no'), 's']]
    for (const [answer, id] of refused)
      expect(
        await engineOn(answer)
          .engine.sessions.open(id)
          .catch((cause: unknown) => cause),
      ).to.be.instanceOf(ApiError)
  })

  it('reads a list up to as many items as are wanted, and takes an answer without a list for one of something else', async () => {
    const pages: Answer[] = [
      () => json({ runs: [1, 2], next_cursor: 'c' }),
      () => json({ runs: [3], next_cursor: null }),
    ]
    expect(
      await engineOn(...pages)
        .engine.runs.list()
        .all(3),
    ).to.deep.equal([1, 2, 3])
    const { engine, sent } = engineOn(...pages)
    expect(await engine.runs.list().all(2)).to.deep.equal([1, 2])
    expect(await engine.runs.list().all(0)).to.deep.equal([])
    expect(sent).to.have.length(1)
    for (const answer of [{ fine: true }, {}])
      expect(
        await engineOn(() => json(answer))
          .engine.runs.list()
          .all()
          .catch((cause: unknown) => cause),
      ).to.be.instanceOf(ConnectionFailed)
  })
})
