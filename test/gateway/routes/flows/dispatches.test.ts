import { expect } from 'chai'
import type { FlowAnswer } from '../../../../shared/kernel/events.ts'
import { newTraceId, runIdOf } from '../../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT, type TenantId } from '../../../../shared/kernel/tenant.ts'
import { answerOf } from '../../../../shared/work/flows/execute/outcome.ts'
import type { Dispatch, DispatchOutput } from '../../../../shared/work/flows/port.ts'
import { openStream } from '../../../support/api-client.ts'
import { useFixture } from '../../../support/fixture.ts'
import { tenantId } from '../../../support/tenant.ts'
import { useContract } from '../../described.ts'
import { dispatchOf, openFlows } from '../../flow-setup.ts'
import { refusalOf, useGateways } from '../../setup.ts'

const acme = tenantId('acme')
const EXECUTOR = 7
const INPUT = { text: 'Two chairs, 60 each' }
const OUTPUT: DispatchOutput = {
  raw_output: '{"total": 120}',
  output: { total: 120 },
  timeline: [
    {
      event: 'started',
      at: '2026-11-22T09:30:00.000Z',
      data: { trace_id: newTraceId(), flow_id: 'f', flow_version: 1, provider_instance: 'main', model: 'm' },
    },
    {
      event: 'progress',
      at: '2026-11-22T09:30:00.900Z',
      data: { agent: 'main', turn_number: 1, model: 'm', input_tokens: 8, output_tokens: 2, cost_usd: 0.1 },
    },
  ],
}

describe('the history of the runs of flows', () => {
  const start = useGateways()
  const described = useContract()
  const flows = useFixture(openFlows)

  const open = (tenant: TenantId = DEFAULT_TENANT) =>
    start({ dispatches: flows().history, identify: async () => ({ tenant, subject: 'anonymous' }) })

  /** Stores an execution that has ended well. */
  async function ended(fields: Partial<Dispatch> = {}, tenant = DEFAULT_TENANT): Promise<Dispatch> {
    const dispatch = dispatchOf(fields)
    await flows().dispatches.create(tenant, dispatch, INPUT)
    await flows().dispatches.begin(tenant, dispatch.trace_id, EXECUTOR)
    const spent = { turns: 1, input_tokens: 8, output_tokens: 2, cost_usd: 0.1 }
    const result = { status: 'ok' as const, served_instance: 'main', error: null, ...spent }
    const last = await flows().dispatches.end(tenant, dispatch.trace_id, { executor: EXECUTOR, result, output: OUTPUT })
    return last ?? expect.fail('another executor was faster')
  }

  const rejected = (fields: Partial<Dispatch> = {}) => {
    const error = { status: 400, type: 'invalid_request_error', message: 'no such instance', code: 'secret_missing' }
    const refused = dispatchOf({ ...fields, status: 'rejected', error, duration_ms: 0 })
    return { ...refused, ended_at: refused.started_at }
  }

  type List = { dispatches: { trace_id: string }[]; next_cursor: string | null }
  const idsOf = ({ dispatches }: List) => dispatches.map(({ trace_id }) => trace_id)

  it('D6.8: GET /dispatches/{id} shows the execution with its payloads', async () => {
    const { get } = await open()
    const dispatch = await ended({ subject: 'ada', idempotency_key: 'k' })
    const path = `/dispatches/${dispatch.trace_id}`
    expect(await described('GET', path, await get(path))).to.deep.include({
      trace_id: dispatch.trace_id,
      tenant: DEFAULT_TENANT,
      subject: 'ada',
      flow: { name: 'invoice-total', version: 1 },
      idempotency_key: 'k',
      status: 'ok',
      error: null,
      input: INPUT,
      raw_output: OUTPUT.raw_output,
      output: OUTPUT.output,
    })
  })

  it('D6.8: executions that are queued, refused, or without payloads are described, too', async () => {
    const { get } = await open()
    const queued = dispatchOf()
    const refused = rejected()
    await flows().dispatches.create(DEFAULT_TENANT, queued, INPUT)
    await flows().dispatches.create(DEFAULT_TENANT, refused, INPUT)
    const bare = await ended({ keeps_payloads: false })
    for (const { trace_id } of [queued, refused, bare]) {
      const path = `/dispatches/${trace_id}`
      expect(await described('GET', path, await get(path))).to.include({ output: null, raw_output: null })
    }
    const path = `/dispatches/${refused.trace_id}`
    expect(await described('GET', path, await get(path))).to.deep.include({
      status: 'rejected',
      error: { type: 'invalid_request_error', message: 'no such instance', code: 'secret_missing' },
    })
  })

  it('D6.8, D2.7: GET /dispatches lists newest first without payloads, filtered and page by page', async () => {
    const { get } = await open(acme)
    const list = async (query: string) =>
      (await described('GET', '/dispatches', await get(`/dispatches${query}`))) as List
    const at = (second: number) => `2099-01-01T00:00:0${second}.000Z`
    const flow = (name: string) => ({ flow: { name, uid: 'flow_2', version: 1 } })
    const first = await ended({ started_at: at(1), ...flow('a') }, acme)
    const second = await ended({ started_at: at(2), ...flow('b') }, acme)
    const third = rejected({ started_at: at(3), ...flow('b') })
    await flows().dispatches.create(acme, third, INPUT)
    const ids = [third, second, first].map(({ trace_id }) => trace_id)

    expect(idsOf(await list(''))).to.deep.equal(ids)
    const page = await list('?limit=2')
    expect(idsOf(page)).to.deep.equal(ids.slice(0, 2))
    expect(idsOf(await list(`?limit=2&cursor=${page.next_cursor}`))).to.deep.equal(ids.slice(2))
    expect(idsOf(await list('?flow=b'))).to.deep.equal(ids.slice(0, 2))
    expect(idsOf(await list('?flow=b&status=ok'))).to.deep.equal([ids[1]])
    expect(idsOf(await list(`?since=${at(2)}&until=${at(3)}`))).to.deep.equal([ids[1]])
    expect(await list('?flow=none')).to.deep.equal({ dispatches: [], next_cursor: null })
  })

  it('D22: GET /dispatches is filtered and searched by its parameters, and /stats adds the records up', async () => {
    const tenant = tenantId('figures')
    const { get } = await open(tenant)
    const list = async (query: string) =>
      idsOf((await described('GET', '/dispatches', await get(`/dispatches${query}`))) as List)
    const one = await ended({ model: 'm-1', subject: 'ada', idempotency_key: 'key 1' }, tenant)
    const two = await ended({ model: 'm-2', provider_instance: 'spare', kind: 'evaluation' }, tenant)
    expect(await list('')).to.deep.equal([one.trace_id])
    expect(await list('?kind=evaluation')).to.deep.equal([two.trace_id])
    expect(await list('?kind=evaluation&instance=spare&model=m-2')).to.deep.equal([two.trace_id])
    for (const query of ['model=m-1', 'subject=ada', 'key=key%201', 'instance=main', 'min_ms=0', 'q=TWO%20chairs'])
      expect(await list(`?${query}`), query).to.deep.equal([one.trace_id])
    for (const query of ['model=m-2', 'subject=bob', 'key=key', 'instance=spare', 'min_ms=86400000', 'q=three'])
      expect(await list(`?${query}`), query).to.deep.equal([])
    for (const query of ['', '?bucket=hour', '?bucket=day&flow=invoice-total']) {
      const path = '/dispatches/stats'
      const body = await described('GET', path, await get(path + query))
      expect(body, query).to.have.nested.property('buckets[0]').that.deep.includes({ runs: 1, cost_usd: 0.1 })
    }
  })

  it('D2.11: a wrong filter, or one given twice, is 400 and names the parameter', async () => {
    const { get } = await open()
    const path = `/dispatches/${(await ended()).trace_id}/events`
    for (const [query, param] of [
      ['/dispatches?flow=A', '/flow'],
      ['/dispatches?flow=', '/flow'],
      ['/dispatches?status=done', '/status'],
      ['/dispatches?status=ok&status=ok', '/status'],
      ['/dispatches?since=yesterday', '/since'],
      ['/dispatches?until=2026-13-01T00:00:00Z', '/until'],
      ['/dispatches?until=2026-01-01&until=2026-01-02', '/until'],
      ['/dispatches?limit=0', '/limit'],
      ['/dispatches?cursor=x', '/cursor'],
      ['/dispatches?kind=other', '/kind'],
      ['/dispatches?min_ms=-1', '/min_ms'],
      ['/dispatches?min_ms=86400001', '/min_ms'],
      ['/dispatches?q=', '/q'],
      [`/dispatches?q=${'x'.repeat(201)}`, '/q'],
      ['/dispatches?q=a&q=b', '/q'],
      ['/dispatches?q=a&cursor=x', '/cursor'],
      [`/dispatches?model=${'x'.repeat(257)}`, '/model'],
      ['/dispatches?instance=-', '/instance'],
      ['/dispatches?key=', '/key'],
      ['/dispatches/stats?bucket=week', '/bucket'],
      ['/dispatches/stats?flow=A', '/flow'],
      ['/dispatches/stats?from=yesterday', '/from'],
      ['/dispatches/stats?from=2026-02-01&to=2026-02-01', '/from'],
      ['/dispatches/stats?cursor=x', '/cursor'],
      [`${path}?speed=0`, '/speed'],
      [`${path}?speed=101`, '/speed'],
      [`${path}?speed=fast`, '/speed'],
      [`${path}?last_event_id=x`, '/last_event_id'],
      [`${path}?last_event_id=4294967296`, '/last_event_id'],
    ] as const) {
      const response = await get(query)
      expect(response.status, query).to.equal(400)
      expect(((await described('GET', query, response)) as { error: object }).error, query).to.include({ param })
    }
  })

  it('D6.8: the replay sends the events with their times, X-Trace-ID and the X-Run-ID of the run', async () => {
    const { url } = await open()
    const dispatch = await ended()
    const path = `/dispatches/${dispatch.trace_id}/events`
    const stream = await openStream(url + path, { method: 'GET' })
    const frames = await stream.all()
    expect(stream.response.headers.get('x-trace-id')).to.equal(dispatch.trace_id)
    expect(stream.runId).to.equal(runIdOf(dispatch.trace_id))
    expect(frames.slice(0, 2).map(({ event, data: { at, ...data } }) => ({ event, at, data }))).to.deep.equal(
      OUTPUT.timeline,
    )
    const answer: FlowAnswer = answerOf({ ...dispatch, status: 'ok' }, OUTPUT)
    expect(frames.at(-1)).to.deep.include({ event: 'result', data: { ...answer, at: dispatch.ended_at } })
  })

  it('D4.5c: a replay continues after Last-Event-ID or last_event_id, at any speed; after the last event the answer is 204', async () => {
    const { url } = await open()
    const path = `${url}/dispatches/${(await ended()).trace_id}/events`
    const whole = await (await openStream(path, { method: 'GET' })).all()
    const last = String(whole.length - 1)
    for (const [query, headers] of [
      ['?speed=100', { 'last-event-id': last }],
      [`?last_event_id=${last}`, {}],
    ] as const) {
      const stream = await openStream(path + query, { method: 'GET', headers: { ...headers } })
      expect(await stream.all()).to.deep.equal(whole.slice(-1))
    }
    for (const query of [`?last_event_id=${whole.length}`, '?speed=0.1&last_event_id=999']) {
      const over = await fetch(path + query)
      expect([over.status, over.headers.get('x-trace-id')]).to.deep.equal([204, path.split('/').at(-2)])
      expect((await fetch(path + query, { method: 'HEAD' })).status).to.equal(204)
    }
  })

  it('HEAD of a replay has the headers of the stream and no frame, and ends at once at any speed', async () => {
    const { url, line } = await open()
    const { trace_id } = await ended()
    const head = (id: string) => fetch(`${url}/dispatches/${id}/events?speed=0.1`, { method: 'HEAD' })
    const response = await head(trace_id)
    expect(Object.fromEntries(response.headers)).to.include({
      'content-type': 'text/event-stream',
      'x-run-id': runIdOf(trace_id),
      'x-trace-id': trace_id,
    })
    expect(await response.text()).to.equal('')
    expect(await line(({ msg }) => msg === 'request'))
      .to.include({ status: 200 })
      .and.not.have.property('is_cut')
    expect((await head(newTraceId())).status).to.equal(404)
  })

  it('api.md Flow execution history: a foreign trace id is the same 404 as an unknown or malformed one', async () => {
    const { trace_id: theirs } = await ended()
    const { get } = await open(acme)
    const unknown = newTraceId()
    for (const rest of ['', '/events']) {
      const answers = []
      for (const id of [theirs, unknown, 'trace_1', unknown.toUpperCase(), '%2e%2e%2f%2e%2e', runIdOf(theirs)]) {
        const response = await get(`/dispatches/${id}${rest}`)
        expect(response.status, id).to.equal(404)
        expect(response.headers.has('x-trace-id')).to.equal(false)
        answers.push((await refusalOf(response)).message.replace(id, '…'))
      }
      expect(answers[0]).to.equal(answers[1])
    }
  })

  it('api.md Flow execution history: without a store, or with DISPATCH_STORE=false, all paths are 503', async () => {
    const { get } = await start()
    for (const path of ['/dispatches', `/dispatches/${newTraceId()}`, `/dispatches/${newTraceId()}/events`]) {
      const response = await get(path)
      expect(response.status, path).to.equal(503)
      expect(await refusalOf(response)).to.include({ type: 'unavailable_error' })
    }
  })
})
