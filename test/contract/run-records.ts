import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import type { RunPage } from '../../shared/cluster/commands/runs.ts'
import { renderFrame } from '../../shared/cluster/journal/frames.ts'
import { pageOf } from '../../shared/cluster/list-page.ts'
import type { RunEvent } from '../../shared/kernel/events.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { lostRecord, type RunFacts, type RunRecord } from '../../shared/work/runs/records/record.ts'
import { type ListKnown, RunHistory } from '../../shared/work/runs/records/run-history.ts'
import {
  createRunRecordStore,
  type EndedRun,
  RUN_EVENTS,
  RUN_RECORDS,
  type RunRecordStore,
} from '../../shared/work/runs/records/store.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import { asStored, DONE, textOf } from '../work/runs/records/setup.ts'
import type { OpenStore } from './store.ts'

const DAY_MS = 86_400_000
const NOON = Date.parse('2026-11-24T12:00:00.000Z')
const isoOf = (ms: number) => new Date(ms).toISOString()

/** The tests of the records of runs, which every store passes. */
export function runRecordContract(open: OpenStore): void {
  let records: RunRecordStore
  let now = NOON
  let tenants = 0
  const store = useOpened(() => open(COLLECTIONS, () => now))
  before(async () => {
    records = createRunRecordStore(store)
  })
  afterEach(() => {
    now = NOON
  })

  const newTenant = () => tenantId(`t_${++tenants}`)
  const runId = (n: number) => `run_${String(n).padStart(32, '0')}`
  /** A run that started `n` minutes before noon and has ended a second later. */
  const recordOf = (n: number, more: Partial<RunRecord> = {}): RunRecord => ({
    ...{ run_id: runId(n), status: 'done', code: 'ok', kind: 'run', event_count: 2 },
    ...{ started_at: isoOf(NOON - n * 60_000), ended_at: isoOf(NOON - n * 60_000 + 1_000) },
    ...more,
  })
  const endedOf = (tenant: TenantId, record: RunRecord, more: Partial<EndedRun> = {}): EndedRun => ({
    ...{ tenant, record, keptDays: 30 },
    ...more,
  })
  /** Events 5 ms after each other. */
  const withEvents = (...events: RunEvent[]): Partial<EndedRun> => ({
    events: events.map((event, i) => ({ seq: i + 1, atMs: 5 * i, event })),
    eventBytes: events.reduce((sum, event, i) => sum + renderFrame(i + 1, event).length, 0),
  })
  const fill = (tenant: TenantId, all: readonly RunRecord[]) =>
    records.add(all.map((record) => endedOf(tenant, record)))
  const numbersOf = (found: readonly { run_id: string }[]) => found.map(({ run_id }) => Number(run_id.slice(4)))

  it('D20.1: a record is returned as it was stored, and only to its tenant', async () => {
    const [tenant, other] = [newTenant(), newTenant()]
    const message = recordOf(1, { kind: 'message', session_id: 's', title: 'a "title" \0 😀', cost_usd: 0.1 })
    await records.add([endedOf(tenant, message, withEvents(textOf('x'))), endedOf(tenant, recordOf(2))])
    expect(await records.get(tenant, runId(1))).to.deep.equal(message)
    expect(await records.get(tenant, runId(2)), 'without a session').to.deep.equal(recordOf(2))
    expect(await records.page(tenant, { limit: 10 })).to.deep.equal([message, recordOf(2)])
    expect(await records.get(other, runId(1))).to.equal(undefined)
    expect(await records.frames(other, runId(1))).to.equal(undefined)
    expect(await records.page(other, { limit: 10 })).to.deep.equal([])
  })

  it('D20.5, D20.6: whoever reads one record gets the phases of its run and what began it, and lists leave them out', async () => {
    const tenant = newTenant()
    const turn: RunEvent[] = [{ type: 'turn_start', turn_number: 1, model: 'm' }, DONE]
    const phases = [{ kind: 'model' as const, name: 'm', turn: 1, started_ms: 0, ended_ms: 5 }]
    const long = withEvents(...turn, textOf('x'.repeat(3_000)))
    const all = [withEvents(...turn), long, withEvents(textOf('x')), {}]
    await records.add(all.map((more, n) => endedOf(tenant, recordOf(n), more)))
    for (const n of [0, 1])
      expect(await records.get(tenant, runId(n)), `run ${n}`).to.deep.equal({ ...recordOf(n), phases })
    for (const n of [2, 3]) expect(await records.get(tenant, runId(n)), `run ${n}`).to.deep.equal(recordOf(n))
    const request = { prompt: 'a "prompt" \0 😀', response_schema: { type: 'object' } }
    for (const [n, more] of [
      [4, { ...withEvents(...turn), request }],
      [5, { ...long, request }],
    ] as const) {
      await records.add([endedOf(tenant, recordOf(n), more)])
      expect(await records.get(tenant, runId(n)), 'D20.6').to.deep.equal({ ...recordOf(n), phases, request })
    }
    expect(await records.page(tenant, { limit: 10 })).to.deep.equal([0, 1, 2, 3, 4, 5].map((n) => recordOf(n)))
  })

  it('D20.2: the first record of a run is its last, whichever it is', async () => {
    const tenant = newTenant()
    const facts = (n: number): RunFacts => ({ ...recordOf(n), tenant, kind: 'run' })
    const lost = (n: number) => lostRecord({ ...facts(n) }, isoOf(NOON))
    await fill(tenant, [lost(1), recordOf(2)])
    await fill(tenant, [recordOf(1), lost(2), recordOf(3)])
    expect(await records.get(tenant, runId(1))).to.deep.equal(asStored(lost(1)))
    expect(await records.get(tenant, runId(2))).to.deep.equal(recordOf(2))
    expect(await records.get(tenant, runId(3)), 'the others of the command').to.deep.equal(recordOf(3))
  })

  it('the same run of two tenants has two records', async () => {
    const [tenant, other] = [newTenant(), newTenant()]
    await records.add([endedOf(tenant, recordOf(1)), endedOf(other, recordOf(1, { status: 'failed' }))])
    expect(await records.get(tenant, runId(1))).to.include({ status: 'done' })
    expect(await records.get(other, runId(1))).to.include({ status: 'failed' })
  })

  it('D20.3: frames of any length are returned as they were', async () => {
    const tenant = newTenant()
    const texts = [
      '',
      'é 😀 \0 "\n',
      ...[1_990, 2_000, 2_010, 4_000, 4_096, 200_000].map((length) => 'x"'.repeat(length / 2)),
    ]
    const odd: RunEvent = { type: 'tool_use', id: '__proto__', tool_name: 'T', input: { b: 1, a: [null, 0.1] } }
    const all = texts.map((text) => [textOf(text), odd, textOf('\ud800'), DONE])
    await records.add(all.map((events, n) => endedOf(tenant, recordOf(n), withEvents(...events))))
    for (const [n, events] of all.entries()) {
      const frames = events.map((event, i) => renderFrame(i + 1, event)).join('')
      expect((await records.frames(tenant, runId(n))) === frames, `${frames.length} characters`).to.equal(true)
    }
    expect(await records.get(tenant, runId(1)), 'the record itself').to.include(recordOf(1))
    expect(await records.frames(tenant, runId(99))).to.equal(undefined)
  })

  it('D20.3: data that are rendered already are stored as they stand', async () => {
    const tenant = newTenant()
    const events = [{ seq: 3, atMs: 0, event: textOf('x'), data: '{"text":"rendered"}' }]
    await records.add([endedOf(tenant, recordOf(1), { events, eventBytes: 50 })])
    await records.add([endedOf(tenant, recordOf(2), { events, eventBytes: 5_000 })])
    for (const n of [1, 2])
      expect(await records.frames(tenant, runId(n))).to.equal('id: 3\nevent: text\ndata: {"text":"rendered"}\n\n')
  })

  it('D20.3: events of more than 2 KiB have a document of their own, which is packed from 4 KiB on', async () => {
    const tenant = newTenant()
    const overhead = renderFrame(1, textOf('')).length
    const rows = [
      [2_048, 100, undefined],
      [2_049, 100, 'text'],
      [2_049, 4_095, 'text'],
      [2_049, 4_096, 'gzip'],
    ] as const
    for (const [n, [eventBytes, chars, form]] of rows.entries()) {
      const events = [{ seq: 1, atMs: 0, event: textOf('x'.repeat(chars - overhead)) }]
      await records.add([endedOf(tenant, recordOf(n), { events, eventBytes })])
      const own = await store.collection(RUN_EVENTS).get(tenant, { run_id: runId(n) })
      expect(own && Object.keys(own.doc).find((name) => name === 'text' || name === 'gzip')).to.equal(form)
    }
  })

  it('records of earlier versions, which held events, frames or phases themselves, are read as before', async () => {
    const tenant = newTenant()
    const phases = [{ kind: 'model', name: 'm', turn: 1, started_ms: 0, ended_ms: 5 }]
    const kept = { frames: 'id: 1\n\n', phases: JSON.stringify(phases), expires_ms: NOON + DAY_MS }
    const events = [
      [1, 0, 'turn_start', { turn_number: 1, model: 'm' }],
      [2, 5, 'done', { turns: 1 }],
    ]
    await store.collection(RUN_RECORDS).insert(tenant, { ...recordOf(1), ...kept })
    await store.collection(RUN_RECORDS).insert(tenant, { ...recordOf(2), events, expires_ms: NOON + DAY_MS })
    expect(await records.get(tenant, runId(1))).to.deep.equal({ ...recordOf(1), phases })
    expect(await records.get(tenant, runId(2))).to.deep.equal({ ...recordOf(2), phases })
    expect(await records.page(tenant, { limit: 10 })).to.deep.equal([recordOf(1), recordOf(2)])
    expect(await records.frames(tenant, runId(1))).to.equal('id: 1\n\n')
    const frames =
      'id: 1\nevent: turn_start\ndata: {"turn_number":1,"model":"m"}\n\nid: 2\nevent: done\ndata: {"turns":1}\n\n'
    expect(await records.frames(tenant, runId(2))).to.equal(frames)
  })

  it('D20.1: a record and its frames are kept for as long as their tenant wants', async () => {
    const tenant = newTenant()
    const ended = endedOf(tenant, recordOf(1), { ...withEvents(textOf('x')), keptDays: 2 })
    await records.add([ended])
    now = Date.parse(ended.record.ended_at) + 2 * DAY_MS - 1
    expect(await records.get(tenant, runId(1))).to.deep.equal(ended.record)
    expect(await records.frames(tenant, runId(1))).to.equal(renderFrame(1, textOf('x')))
    now += 1
    expect(await records.get(tenant, runId(1))).to.equal(undefined)
    expect(await records.frames(tenant, runId(1))).to.equal(undefined)
    expect(await records.page(tenant, { limit: 10 })).to.deep.equal([])
  })

  it('a page holds the newest, those of the same start by their ids, within the given times', async () => {
    const tenant = newTenant()
    const { started_at } = recordOf(3)
    await fill(tenant, [recordOf(1), recordOf(2), recordOf(3), recordOf(4, { started_at }), recordOf(5)])
    expect(numbersOf(await records.page(tenant, { limit: 10 }))).to.deep.equal([1, 2, 4, 3, 5])
    expect(numbersOf(await records.page(tenant, { limit: 2 }))).to.deep.equal([1, 2])
    const after = [started_at, runId(4)] as const
    expect(numbersOf(await records.page(tenant, { limit: 10, after }))).to.deep.equal([3, 5])
    expect(numbersOf(await records.page(tenant, { limit: 10, since: started_at }))).to.deep.equal([1, 2, 4, 3])
    expect(numbersOf(await records.page(tenant, { limit: 10, since: started_at, after }))).to.deep.equal([3])
  })

  it('D20.4: open runs are found by their processes, of all tenants, until they are deleted', async () => {
    const factsOf = (n: number, tenant: TenantId): RunFacts => {
      return { tenant, run_id: runId(n), kind: 'run', started_at: isoOf(NOON) }
    }
    const [tenant, other] = [newTenant(), newTenant()]
    const both = { id: 'o1', owner: '10', runs: [factsOf(1, tenant), factsOf(2, other)] }
    expect(await records.nextOwner(undefined)).to.equal(undefined)
    await records.addOpen(both)
    await records.addOpen({ id: 'o2', owner: '10', runs: [factsOf(3, tenant)] })
    await records.addOpen({ id: 'o3', owner: '9', runs: [{ ...factsOf(4, tenant), subject: undefined }] })
    expect(await records.nextOwner(undefined)).to.equal('10')
    expect(await records.nextOwner('10')).to.equal('9')
    expect(await records.nextOwner('9')).to.equal(undefined)
    expect((await records.openOf('10'))[0]).to.deep.equal(both)
    expect((await records.openOf('9'))[0]?.runs).to.deep.equal([factsOf(4, tenant)])
    await records.deleteOpen(['o1', 'o3'])
    expect((await records.openOf('10')).map(({ id }) => id)).to.deep.equal(['o2'])
    await records.deleteOpen(['o1', 'o2', 'o3'])
    await records.deleteOpen([])
    expect(await records.nextOwner(undefined)).to.equal(undefined)
    expect(await records.openOf('10')).to.deep.equal([])
  })

  it('D20.1: a list shows live runs, then those not recorded, then the records, for every size of a page', async () => {
    const tenant = newTenant()
    // The runs of each part are older and newer than those of the others.
    const live = [recordOf(2), recordOf(7)]
    const unrecorded = [recordOf(3), recordOf(5)]
    const sameStart = { started_at: recordOf(4).started_at }
    await fill(tenant, [recordOf(1), recordOf(4), recordOf(6, sameStart), recordOf(8)])
    const listKnown: ListKnown = async ({ among, ...where }) => {
      const all = among === 'live' ? live : unrecorded
      const { page, next } = pageOf(all, (run) => ({ startedMs: Date.parse(run.started_at), id: run.run_id }), where)
      return { runs: page, next_cursor: next }
    }
    const history = new RunHistory({ store: records, retentionDays: async () => 30, now: () => now })
    const all = [2, 7, 3, 5, 1, 6, 4, 8]
    for (let limit = 1; limit <= all.length + 1; limit++) {
      const pages: number[][] = []
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page: RunPage = await history.list(tenant, listKnown, { limit, ...(cursor !== undefined && { cursor }) })
        pages.push(numbersOf(page.runs))
        cursor = page.next_cursor
      }
      expect(pages.flat(), `${limit} a page`).to.deep.equal(all)
      expect(pages.slice(0, -1).every((page) => page.length === limit)).to.equal(true)
      expect(pages, `${limit} a page`).to.have.length(Math.ceil(all.length / limit))
    }
  })
}
