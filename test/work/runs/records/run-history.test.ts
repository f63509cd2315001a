import { expect } from 'chai'
import type { RunFilter, RunPage, RunSearch, RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import { pageOf } from '../../../../shared/cluster/list-page.ts'
import { encodeCursor } from '../../../../shared/kernel/cursor.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import type { RunRecord } from '../../../../shared/work/runs/records/record.ts'
import { type ListKnown, RunHistory } from '../../../../shared/work/runs/records/run-history.ts'
import type { RecordQuery } from '../../../../shared/work/runs/records/store.ts'
import { recordOf as example, runId, TENANT } from './setup.ts'

const NOON = Date.parse('2026-11-24T12:00:00.000Z')
const MINUTE_MS = 60_000
const AWAY = new AppError('unavailable', 'the store is away')

/** A run that started `n` minutes before noon and has ended a second later. */
const recordOf = (n: number, more: Partial<RunRecord> = {}) =>
  example(n, {
    started_at: new Date(NOON - n * MINUTE_MS).toISOString(),
    ended_at: new Date(NOON - n * MINUTE_MS + 1_000).toISOString(),
    ...more,
  })
const liveOf = (n: number, more: Partial<RunSummary> = {}): RunSummary => {
  const { code: _code, ...run } = recordOf(n)
  return { ...run, status: 'running', ended_at: null, ...more }
}
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
const numberOf = ({ run_id }: RunSummary) => Number(run_id.slice(4))
const numbersOf = ({ runs }: RunPage) => runs.map(numberOf)

type Known = {
  live?: RunSummary[]
  unrecorded?: RunSummary[]
  records?: RunRecord[]
  days?: number
  limits?: { rows: number; ms: number }
}

describe('the list of runs with their records', () => {
  function setUp({ live = [], unrecorded = [], records = [], days = 30, limits }: Known) {
    const asked = { records: 0, pages: 0, isAway: false, incomplete: false, known: [] as object[] }
    let byPlace: RunRecord[] = []
    const store = {
      get: async (_tenant: string, id: string) => records.find(({ run_id }) => run_id === id),
      frames: async () => undefined,
      async page(_tenant: string, { after, since = '', limit }: RecordQuery) {
        if (asked.isAway) throw AWAY
        asked.pages++
        if (byPlace.length !== records.length) byPlace = [...records].sort((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1))
        const found = byPlace.filter(
          (run) => (after === undefined || keyOf(run) < after.join(' ')) && run.started_at >= since,
        )
        asked.records += Math.min(limit, found.length)
        return found.slice(0, limit)
      },
    }
    const listKnown: ListKnown = async (filter) => {
      asked.known.push(filter)
      const { among, status, ...where } = filter
      const all = (among === 'live' ? live : unrecorded).filter((run) => status === undefined || run.status === status)
      const { page, next } = pageOf(all, (run) => ({ startedMs: Date.parse(run.started_at), id: run.run_id }), where)
      return { runs: page, next_cursor: next, ...(asked.incomplete && { incomplete: true as const }) }
    }
    const retentionDays = async () => days
    const history = new RunHistory({ store, retentionDays, now: () => NOON, ...(limits && { limits }) })
    const list = (request: Partial<RunFilter & RunSearch> = {}) =>
      history.list(TENANT, listKnown, { limit: 10, ...request })
    const all = async (request: Partial<RunFilter & RunSearch>) => {
      const pages: RunPage[] = []
      for (let cursor: string | null | undefined; cursor !== null; cursor = pages.at(-1)?.next_cursor)
        pages.push(await list({ ...request, ...(cursor !== undefined && { cursor }) }))
      return pages
    }
    return { history, list, all, asked, live, unrecorded, records }
  }
  const keyOf = ({ started_at, run_id }: RunSummary) => `${started_at} ${run_id}`

  it('D20.1: each filter selects among live runs, those not recorded and the records, for every size of a page', async () => {
    const fields = { customer_id: 'ada', subject: 's', model: 'm', session_id: 'x', cost_usd: 1 }
    const { all } = setUp({
      live: [liveOf(1), liveOf(5, fields)],
      unrecorded: [recordOf(2, fields), recordOf(3)],
      records: [recordOf(4), recordOf(6, fields), recordOf(7), recordOf(8, fields), recordOf(9)],
    })
    const searches = [{ customer_id: 'ada' }, { subject: 's' }, { model: 'm' }, { session_id: 'x' }, { min_cost: 1 }]
    for (const search of searches)
      for (const limit of range(1, 5)) {
        const pages = await all({ ...search, limit })
        expect(pages.flatMap(numbersOf), `${JSON.stringify(search)}, ${limit}`).to.deep.equal([5, 2, 6, 8])
        expect(pages.slice(0, -1).every(({ runs }) => runs.length === limit)).to.equal(true)
      }
  })

  it('D20.1: a status selects among all parts, and one of live runs does not ask for records', async () => {
    const failed = { status: 'failed', code: 'internal' } as const
    const { list, asked } = setUp({
      live: [liveOf(1), liveOf(2, { status: 'waiting' })],
      unrecorded: [recordOf(3), recordOf(4, failed)],
      records: [recordOf(5), recordOf(6, failed)],
    })
    expect(numbersOf(await list({ status: 'failed' }))).to.deep.equal([4, 6])
    await list()
    expect(asked.known).to.deep.equal([
      ...['live', 'unrecorded'].map((among) => ({ among, limit: 200, status: 'failed' })),
      ...['live', 'unrecorded'].map((among) => ({ among, limit: 11 })),
    ])
    expect(numbersOf(await list({ status: 'done' }))).to.deep.equal([3, 5])
    asked.isAway = true
    expect(await list({ status: 'running' })).to.deep.equal({ runs: [liveOf(1)], next_cursor: null })
    expect(numbersOf(await list({ status: 'waiting' }))).to.deep.equal([2])
  })

  it('`since` is included, `until` is not, and records outside are not read', async () => {
    const records = range(1, 9).map((n) => recordOf(n))
    const { list, asked } = setUp({ live: range(11, 19).map((n) => liveOf(n)), records })
    const of = (from: number, to: number) => ({ since: recordOf(from).started_at, until: recordOf(to).started_at })
    expect(numbersOf(await list(of(6, 4)))).to.deep.equal([5, 6])
    expect(asked.records).to.equal(2)
    expect(numbersOf(await list(of(16, 14)))).to.deep.equal([15, 16])
  })

  it('a run that is recorded while the list is read is shown once', async () => {
    const { list } = setUp({ unrecorded: [recordOf(1), recordOf(2)], records: [recordOf(2), recordOf(3)] })
    expect(numbersOf(await list())).to.deep.equal([1, 2, 3])
  })

  it('a run that ends between two pages is not lost', async () => {
    const { list, live, unrecorded, records } = setUp({ live: [liveOf(1), liveOf(2)], unrecorded: [], records: [] })
    const { next_cursor, ...first } = await list({ limit: 1 })
    expect(numbersOf({ ...first, next_cursor })).to.deep.equal([1])
    live.pop()
    unrecorded.push(recordOf(2))
    expect(numbersOf(await list({ cursor: next_cursor ?? '' }))).to.deep.equal([2])
    expect(records).to.have.length(0)
  })

  it('D20.1: a run that is recorded between two pages is listed once, whichever part listed it before', async () => {
    const { list, live, unrecorded, records } = setUp({
      live: range(1, 3).map((n) => liveOf(n)),
      unrecorded: [recordOf(4), recordOf(5)],
      records: range(6, 8).map((n) => recordOf(n)),
    })
    const listed: number[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await list({ limit: 1, ...(cursor !== undefined && { cursor }) })
      listed.push(...numbersOf(page))
      cursor = page.next_cursor
      records.push(...unrecorded.splice(0).map((run) => recordOf(numberOf(run))))
      unrecorded.push(...live.splice(0, 1).map((run) => recordOf(numberOf(run))))
    }
    expect(listed).to.have.members(range(1, 8))
  })

  it('D20.1: a run that a filter finds only once it is recorded is listed then', async () => {
    const { list } = setUp({ live: [liveOf(1)], records: [recordOf(1, { model: 'm' })] })
    expect(numbersOf(await list({ model: 'm' }))).to.deep.equal([1])
  })

  it('a cursor names 400 runs that were listed before their record, and is short enough to be sent', async () => {
    const { list, live, records } = setUp({ live: range(1, 500).map((n) => liveOf(n)) })
    const { next_cursor: first } = await list({ limit: 499 })
    records.push(...live.splice(0).map((_, i) => recordOf(i + 1)))
    expect(first).to.match(/^[\w-]{1,4096}$/)
    const rest = await list({ limit: 500, cursor: first ?? '' })
    expect(numbersOf(rest), 'the first ones are listed again').to.deep.equal([...range(1, 99), 500])
  })

  const SHORT = { rows: 2_000, ms: Infinity }

  it('D20.1: a page of rare runs is full, or the last one, however many others are between them', async () => {
    const rare = { model: 'rare' }
    const records = range(1, 5_000).map((n) => recordOf(n, n % 2_400 === 0 ? rare : {}))
    const { list } = setUp({ records, limits: { rows: 50_000, ms: Infinity } })
    expect(await list(rare).then(({ runs, next_cursor }) => [runs.map(numberOf), next_cursor])).to.deep.equal([
      [2_400, 4_800],
      null,
    ])
    const first = await list({ ...rare, limit: 1 })
    expect(numbersOf(first)).to.deep.equal([2_400])
    expect(numbersOf(await list({ ...rare, limit: 1, cursor: first.next_cursor ?? '' }))).to.deep.equal([4_800])
  })

  it('D20.1: a request reads 50,000 rows at most, and the next one goes on behind them', async () => {
    const rare = { model: 'rare' }
    const records = range(1, 4_500).map((n) => recordOf(n, n === 1 || n === 4_400 ? rare : {}))
    const { list, all, asked } = setUp({ records, limits: SHORT })
    const first = await list(rare)
    expect(numbersOf(first)).to.deep.equal([1])
    expect(asked.records).to.equal(2_000)
    expect(first.next_cursor).to.be.a('string')
    const pages = await all(rare)
    expect(pages.map(numbersOf)).to.deep.equal([[1], [], [4_400]])
    expect((await all({ ...rare, limit: 1 })).flatMap(numbersOf)).to.deep.equal([1, 4_400])
  })

  it('D20.1: a request whose time is over is answered with what it has found, and the next one goes on', async () => {
    const records = range(1, 900).map((n) => recordOf(n, n === 850 ? { model: 'rare' } : {}))
    const { all, asked } = setUp({ records, limits: { rows: Infinity, ms: 0 } })
    expect((await all({ model: 'rare' })).map(numbersOf)).to.deep.equal([[], [], [], [], [850]])
    expect(asked.records).to.equal(900)
  })

  it('live runs that are not asked for are among the rows that one request reads', async () => {
    const { all } = setUp({
      live: range(1, 2_100).map((n) => liveOf(n)),
      records: [recordOf(3_000, { model: 'rare' })],
      limits: SHORT,
    })
    expect((await all({ model: 'rare' })).map(numbersOf)).to.deep.equal([[], [3_000]])
  })

  it('D20.1: while one request searches the records, others are answered', async () => {
    const { list } = setUp({ records: range(1, 2_000).map((n) => recordOf(n)) })
    let turns = 0
    let isOver = false
    const count = () => {
      turns++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    await list({ model: 'rare' })
    isOver = true
    expect(turns).to.be.at.least(10)
  })

  it('runs that ended before the tenant shortened its time are hidden, and one that began before it and ended later is not', async () => {
    const dayOf = 24 * 60
    const ended_at = recordOf(1).ended_at
    const { list, history } = setUp({
      records: [recordOf(1), recordOf(dayOf + 1), recordOf(dayOf + 2, { ended_at })],
      days: 1,
    })
    expect(numbersOf(await list())).to.deep.equal([1, dayOf + 2])
    expect(await history.get(TENANT, runId(1))).to.deep.equal(recordOf(1))
    expect(await history.get(TENANT, runId(dayOf + 1))).to.equal(undefined)
    expect(await history.get(TENANT, runId(dayOf + 2))).to.include({ run_id: runId(dayOf + 2) })
  })

  it('hidden runs are among the rows that one request reads', async () => {
    const days = 1
    const old = range(1, 2_500).map((n) => recordOf(24 * 60 + n))
    const { list, asked } = setUp({ records: [recordOf(1), ...old], days, limits: SHORT })
    const first = await list()
    expect(numbersOf(first)).to.deep.equal([1])
    expect(asked.records).to.be.below(2_020)
    const { runs, next_cursor } = await list({ cursor: first.next_cursor ?? '' })
    expect({ runs, next_cursor }).to.deep.equal({ runs: [], next_cursor: null })
  })

  it('D20.1: while the store is away the known runs are listed as incomplete', async () => {
    const { list, asked } = setUp({ live: [liveOf(1)], unrecorded: [recordOf(2)], records: [recordOf(3)] })
    asked.isAway = true
    const page = await list()
    expect(numbersOf(page)).to.deep.equal([1, 2])
    expect(page).to.include({ next_cursor: null, incomplete: true })
  })

  it('a cursor among the records is refused while the store is away', async () => {
    const { list, asked } = setUp({ records: [recordOf(1), recordOf(2)] })
    const { next_cursor } = await list({ limit: 1 })
    asked.isAway = true
    const failure = await list({ cursor: next_cursor ?? '' }).catch((cause: unknown) => cause)
    expect(failure).to.equal(AWAY)
  })

  it('is incomplete when a process did not answer', async () => {
    const { list, asked } = setUp({ live: [liveOf(1)], records: [recordOf(2)] })
    expect(await list()).not.to.have.property('incomplete')
    asked.incomplete = true
    expect(await list()).to.have.property('incomplete', true)
  })

  it('D2.7: a cursor that no list has returned is refused', async () => {
    const { list } = setUp({ live: [liveOf(1)] })
    const wrong = [['x', 'y'], ['live', 'y'], ['unrecorded', ''], ['x', 'y', 'z'], ['records'], ['live', 1]]
    for (const cursor of ['', 'x', ...wrong.map((values) => encodeCursor(values))]) {
      const failure = await list({ cursor }).catch((cause: unknown) => cause)
      expect(failure, cursor).to.include({ kind: 'invalid_request' })
    }
  })
})
