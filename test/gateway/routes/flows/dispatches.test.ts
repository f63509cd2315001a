import { expect } from 'chai'
import { newTraceId, runIdOf } from '../../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT, type TenantId } from '../../../../shared/kernel/tenant.ts'
import type { Dispatch, DispatchOutput } from '../../../../shared/work/flows/port.ts'
import { openStream } from '../../../support/api-client.ts'
import { useFixture } from '../../../support/fixture.ts'
import { useContract } from '../../described.ts'
import { dispatchOf, openFlows } from '../../flow-setup.ts'
import { refusalOf, useGateways } from '../../setup.ts'

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

  it('api.md Flow execution history: without a store, or with DISPATCH_STORE=false, all paths are 503', async () => {
    const { get } = await start()
    for (const path of ['/dispatches', `/dispatches/${newTraceId()}`, `/dispatches/${newTraceId()}/events`]) {
      const response = await get(path)
      expect(response.status, path).to.equal(503)
      expect(await refusalOf(response)).to.include({ type: 'unavailable_error' })
    }
  })
})
