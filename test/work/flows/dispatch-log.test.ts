import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { newTraceId } from '../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { DispatchLog } from '../../../shared/work/flows/dispatch-log.ts'
import { DAY_MS, FAILED, INPUT, OK, OUTPUT } from '../../contract/dispatch-setup.ts'
import { failureOf } from '../../support/failure-of.ts'
import { tenantId } from '../../support/tenant.ts'
import { useHistory } from './history-setup.ts'

const HOUR_MS = 3_600_000
const OTHER = tenantId('t_other')
const DETAIL_FIELDS = [
  'trace_id',
  'kind',
  'tenant',
  'subject',
  'flow',
  'provider_instance',
  'served_instance',
  'model',
  'idempotency_key',
  'input',
  'raw_output',
  'status',
  'output',
  'error',
  'started_at',
  'ended_at',
  'duration_ms',
  'turns',
  'input_tokens',
  'output_tokens',
  'cost_usd',
]

describe('the history of flow runs', () => {
  const history = useHistory()
  const retention = { days: 30 }
  let log: DispatchLog
  before(() => {
    log = new DispatchLog({
      dispatches: history.dispatches,
      retentionDays: async () => retention.days,
      now: history.now,
    })
  })
  beforeEach(() => {
    retention.days = 30
    history.clock.ms += DAY_MS
  })
  const idsOf = async (filter = {}) =>
    (await log.list(TENANT, { limit: 50, ...filter })).dispatches.map(({ trace_id }) => trace_id)

  it('D6.8: the detail has exactly the fields of the decision, and the list all but the payloads', async () => {
    const dispatch = await history.end(await history.queue({ idempotency_key: 'key' }))
    const detail = await log.get(TENANT, dispatch.trace_id)
    expect(detail).to.have.all.keys(DETAIL_FIELDS)
    expect(detail).to.deep.include({
      tenant: TENANT,
      flow: { name: 'summarize', version: 3 },
      input: INPUT,
      raw_output: OUTPUT.raw_output,
      output: OUTPUT.output,
      error: null,
      status: 'ok',
      duration_ms: 2_000,
      idempotency_key: 'key',
    })
    const { input: _input, raw_output: _raw, output: _output, ...summary } = detail
    expect((await log.list(TENANT, { limit: 1 })).dispatches).to.deep.equal([summary])
  })

  it('payloads are null where they are not there yet, and an error has the type, the message and the code of the envelope', async () => {
    const queued = await history.queue()
    expect(await log.get(TENANT, queued.trace_id)).to.deep.include({ input: INPUT, raw_output: null, output: null })
    const failed = await history.end(queued, FAILED, { ...OUTPUT, output: null })
    const error = { type: 'upstream_error', message: 'the main agent failed', code: 'provider_auth' }
    expect(await log.get(TENANT, failed.trace_id)).to.deep.include({ error, raw_output: OUTPUT.raw_output })
  })

  it('payloads that are not to be kept are never shown, not even while the answer is still stored', async () => {
    const queued = await history.queue({ keeps_payloads: false })
    const hidden = { input: null, raw_output: null, output: null }
    expect(await log.get(TENANT, queued.trace_id)).to.deep.include(hidden)
    await history.end(queued)
    expect(await log.get(TENANT, queued.trace_id)).to.deep.include({ ...hidden, status: 'ok' })
  })

  it('a foreign and an unknown trace id are refused by the same 404, and lists are separate', async () => {
    const { trace_id } = await history.queue()
    const unknown = newTraceId()
    const textOf = (failure: AppError, id: string) => [failure.kind, failure.message.replace(id, 'ID')]
    for (const read of [log.get.bind(log), log.replay.bind(log)]) {
      const foreign = textOf(await failureOf(read(OTHER, trace_id)), trace_id)
      expect(foreign).to.deep.equal(textOf(await failureOf(read(TENANT, unknown)), unknown))
      expect(foreign[0]).to.equal('not_found')
    }
    expect((await log.list(OTHER, { limit: 50 })).dispatches).to.deep.equal([])
  })

  it('D6.8: the list is filtered by flow, status and time: from `since` on, before `until`', async () => {
    const first = await history.end(await history.queue())
    history.clock.ms += 1_000
    const second = await history.queue({ flow: { name: 'classify', uid: 'flow_2', version: 1 } })
    const since = first.started_at
    expect(await idsOf({ since })).to.deep.equal([second.trace_id, first.trace_id])
    expect(await idsOf({ since, until: second.started_at })).to.deep.equal([first.trace_id])
    expect(await idsOf({ since: second.started_at })).to.deep.equal([second.trace_id])
    expect(await idsOf({ since, flow: 'classify' })).to.deep.equal([second.trace_id])
    expect(await idsOf({ since, status: 'ok' })).to.deep.equal([first.trace_id])
    expect(await idsOf({ since, status: 'ok', flow: 'classify' })).to.deep.equal([])
    for (const time of ['', '1', 'yesterday', '2026-13-01', '2026-11-22 10:00', '2026-11-22T10:00'])
      for (const name of ['since', 'until'])
        expect(await failureOf(idsOf({ [name]: time })), time).to.include({
          kind: 'invalid_request',
          param: `/${name}`,
        })
    for (const time of ['2026-01-01', '2026-01-01T00:00Z', '2026-01-01T00:00:00.5+02:00']) await idsOf({ since: time })
  })

  it('D22.1: kind shows the executions of evaluations instead of the others, and each says what it is', async () => {
    const since = history.now().toISOString()
    const { trace_id } = await history.queue({ kind: 'evaluation' })
    const run = await history.queue()
    expect(await idsOf({ since, kind: 'evaluation' })).to.deep.equal([trace_id])
    expect(await idsOf({ since, kind: 'run' })).to.deep.equal([run.trace_id])
    expect((await log.get(TENANT, trace_id)).kind).to.equal('evaluation')
    expect(await idsOf({ since, kind: 'evaluation', subject: 'anna' })).to.deep.equal([trace_id])
  })

  it('the detail of an invalid output has its problems, and an ended execution is over behind its last event', async () => {
    const problems = [{ path: '/summary', message: 'is missing' }]
    const { trace_id } = await history.end(await history.queue(), OK, { ...OUTPUT, problems })
    expect((await log.get(TENANT, trace_id)).problems).to.deep.equal(problems)
    expect((await log.replay(TENANT, trace_id, { after: 99 })).isOver).to.equal(true)
    const running = await history.queue()
    expect((await log.replay(TENANT, running.trace_id, { after: 99 })).isOver).to.equal(false)
  })

  it('D22.2: the figures are of whole hours and days, within the retention, and of 24 hours or 30 days without bounds', async () => {
    history.clock.ms = Math.ceil(history.clock.ms / DAY_MS) * DAY_MS + DAY_MS / 2
    const noon = history.clock.ms
    const startsOf = async (filter: object) => {
      const { buckets } = await log.stats(TENANT, { bucket: 'hour', limit: 50, ...filter })
      return buckets.map(({ start }) => (Date.parse(start) - noon) / HOUR_MS)
    }
    const iso = (ms: number) => new Date(noon + ms).toISOString()
    const flow = { flow: { name: 'figures', uid: 'flow_9', version: 1 } }
    await history.queue(flow)
    for (const hours of [1, 2, 30]) {
      history.clock.ms = noon + hours * HOUR_MS + 60_000
      await history.queue(flow)
    }
    const figures = { flow: 'figures' }
    expect(await startsOf(figures)).to.deep.equal([30])
    expect(await startsOf({ ...figures, from: iso(60_000) })).to.deep.equal([30, 2, 1, 0])
    expect(await startsOf({ ...figures, from: iso(HOUR_MS + 120_000), to: iso(2 * HOUR_MS) })).to.deep.equal([1])
    expect(await startsOf({ ...figures, from: iso(0), to: iso(2 * HOUR_MS + 1) })).to.deep.equal([2, 1, 0])
    expect(await startsOf({ ...figures, bucket: 'day' })).to.deep.equal([12, -12])
    expect(await startsOf({ flow: 'none', bucket: 'day' })).to.deep.equal([])
    expect((await log.stats(OTHER, { bucket: 'day', limit: 50 })).buckets).to.deep.equal([])
    history.clock.ms = noon + 40 * HOUR_MS
    await history.queue(flow)
    expect(await startsOf(figures), 'one that has begun at this moment, which is a new hour').to.deep.equal([40, 30])
    retention.days = 1
    history.clock.ms = noon + 26 * HOUR_MS
    expect(await startsOf({ ...figures, from: iso(0), to: iso(30 * HOUR_MS) })).to.deep.equal([2])
    for (const [filter, param] of [
      [{ from: iso(1), to: iso(1) }, '/from'],
      [{ from: 'yesterday' }, '/from'],
      [{ to: 'today' }, '/to'],
      [{ cursor: 'x' }, '/cursor'],
    ] as const)
      expect(await failureOf(log.stats(TENANT, { bucket: 'day', limit: 5, ...filter }))).to.include({ param })
  })

  it('a record that is older than the retention of today is not shown, though it is stored for longer', async () => {
    const { trace_id } = await history.queue()
    history.clock.ms += 2 * DAY_MS
    expect(await idsOf()).to.include(trace_id)
    retention.days = 2
    expect((await log.get(TENANT, trace_id)).trace_id).to.equal(trace_id)
    history.clock.ms += 1
    expect(await idsOf()).to.not.include(trace_id)
    expect(await idsOf({ since: '2020-01-01' })).to.not.include(trace_id)
    expect(await failureOf(log.get(TENANT, trace_id)))
      .to.be.instanceOf(AppError)
      .and.include({ kind: 'not_found' })
    expect(await history.dispatches.get(TENANT, trace_id)).to.include({ trace_id })
  })

  it('D54.8: that of an execution with a deadline is shown until a day behind it, whatever the retention', async () => {
    const deadlineMs = history.clock.ms + 7 * DAY_MS
    const { trace_id } = await history.queue({ deadline_at: new Date(deadlineMs).toISOString() })
    retention.days = 1
    for (const [ms, isShown] of [
      [deadlineMs + DAY_MS - 1, true],
      [deadlineMs + DAY_MS, false],
    ] as const) {
      history.clock.ms = ms
      expect((await idsOf()).includes(trace_id)).to.equal(isShown)
      const found = await log.get(TENANT, trace_id).catch(({ kind }: AppError) => kind)
      expect(found).to.deep.include(isShown ? { trace_id } : 'not_found')
    }
  })
})
