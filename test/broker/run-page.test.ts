import { expect } from 'chai'
import type { RunPage, RunSummary } from '../../shared/broker/port.ts'
import { mergePages, pageOf } from '../../shared/broker/run-page.ts'

const AT = Date.parse('2026-01-01T00:00:00.000Z')
const run = (n: number, startedMs = AT + n): RunSummary => ({
  run_id: `run_${n.toString(16).padStart(32, '0')}`,
  status: 'done',
  started_at: new Date(startedMs).toISOString(),
  ended_at: null,
  event_count: 1,
})
const placeOf = ({ started_at, run_id }: RunSummary) => ({ startedMs: Date.parse(started_at), id: run_id })

/** Reads a list that lies on several workers, page by page. */
function readAll(workers: readonly RunSummary[][], limit: number): RunSummary[] {
  const seen: RunSummary[] = []
  let cursor: string | null | undefined
  do {
    const where = { limit, ...(cursor && { cursor }) }
    const pages = workers.map((runs): RunPage => {
      const { page, next } = pageOf(runs, placeOf, where)
      return { runs: page, next_cursor: next }
    })
    const page = mergePages(pages, limit)
    seen.push(...page.runs)
    cursor = page.next_cursor
  } while (cursor !== null)
  return seen
}

describe('pages of runs', () => {
  const all = Array.from({ length: 23 }, (_, n) => run(n, n % 3 ? AT + n : AT)) // Some of one millisecond.
  const newestFirst = all.toSorted((a, b) => (`${a.started_at} ${a.run_id}` < `${b.started_at} ${b.run_id}` ? 1 : -1))

  for (const limit of [1, 2, 5, 23, 50]) {
    it(`D2.7: what several workers have is one list, newest first, each run once, in pages of ${limit}`, () => {
      const workers = [all.filter((_, n) => n % 4 === 0), all.filter((_, n) => n % 4 !== 0), []]
      expect(readAll(workers, limit)).to.deep.equal(newestFirst)
    })
  }

  it('D2.7: the last page has no cursor, though it is full', () => {
    expect(mergePages([{ runs: [run(1)], next_cursor: null }], 1).next_cursor).to.equal(null)
    expect(mergePages([], 10)).to.deep.equal({ runs: [], next_cursor: null })
  })
})
