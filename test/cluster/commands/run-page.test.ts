import { expect } from 'chai'
import { mergeRuns } from '../../../shared/cluster/commands/pages.ts'
import type { RunPage, RunSummary } from '../../../shared/cluster/commands/runs.ts'
import { pageOf } from '../../../shared/cluster/list-page.ts'
import { encodeCursor } from '../../../shared/kernel/cursor.ts'
import { AppError } from '../../../shared/kernel/errors.ts'

const AT = Date.parse('2026-01-01T00:00:00.000Z')
const run = (n: number, startedMs = AT + n): RunSummary => ({
  run_id: `run_${n.toString(16).padStart(32, '0')}`,
  status: 'done',
  started_at: new Date(startedMs).toISOString(),
  ended_at: null,
  event_count: 1,
})
const positionOf = ({ started_at, run_id }: RunSummary) => ({ startedMs: Date.parse(started_at), id: run_id })

/** Reads the list of runs of several workers, page by page. */
function readAll(workers: readonly RunSummary[][], limit: number): RunSummary[] {
  const seen: RunSummary[] = []
  let cursor: string | null = null
  do {
    const where = { limit, ...(cursor !== null && { cursor }) }
    const pages = workers.map((runs): RunPage => {
      const { page, next } = pageOf(runs, positionOf, where)
      return { runs: page, next_cursor: next }
    })
    const page = mergeRuns(pages, limit)
    seen.push(...page.runs)
    cursor = page.next_cursor
  } while (cursor !== null)
  return seen
}

describe('pages of runs', () => {
  const all = Array.from({ length: 23 }, (_, n) => run(n, n % 3 ? AT + n : AT)) // Every third run starts in the same millisecond.
  const newestFirst = all.toSorted((a, b) => (`${a.started_at} ${a.run_id}` < `${b.started_at} ${b.run_id}` ? 1 : -1))

  for (const limit of [1, 2, 5, 23, 50]) {
    it(`D2.7: the runs of several workers form one list, newest first, each run once, in pages of ${limit}`, () => {
      const workers = [all.filter((_, n) => n % 4 === 0), all.filter((_, n) => n % 4 !== 0), []]
      expect(readAll(workers, limit)).to.deep.equal(newestFirst)
    })
  }

  it('D2.7: the last page has no cursor, even when it is full', () => {
    expect(pageOf([run(1)], positionOf, { limit: 1 })).to.deep.equal({ page: [run(1)], next: null })
    expect(mergeRuns([{ runs: [run(1)], next_cursor: null }], 1).next_cursor).to.equal(null)
    expect(mergeRuns([], 10)).to.deep.equal({ runs: [], next_cursor: null })
  })

  it('D2.7: a merged page has a cursor when one worker has more runs, although the page holds all that came', () => {
    const { next } = pageOf([run(2), run(1)], positionOf, { limit: 1 })
    const page = mergeRuns([{ runs: [run(2)], next_cursor: next }], 1)
    expect(page).to.deep.equal({ runs: [run(2)], next_cursor: next })
    expect(next).to.equal(encodeCursor([run(2).started_at, run(2).run_id]))
  })

  it('D2.7: a page continues after the cursor’s position when the run there no longer exists', () => {
    const cursor = encodeCursor([run(5).started_at, run(5).run_id])
    const sameTime = [run(4, AT + 5), run(6, AT + 5)]
    const { page } = pageOf([run(7), ...sameTime, run(3)], positionOf, { limit: 10, cursor })
    expect(page).to.deep.equal([run(4, AT + 5), run(3)])
  })

  const { started_at: time, run_id: id } = run(1)
  for (const [name, cursor] of Object.entries({
    'text that is not encoded': 'bogus',
    'no characters': '',
    'a time that does not exist': encodeCursor(['2026-13-01T00:00:00.000Z', id]),
    'an id with more characters before it': encodeCursor([time, `x${id}`]),
    'an id with more characters after it': encodeCursor([time, `${id}0`]),
    'an id of another kind': encodeCursor([time, id.replace('run', 'perm')]),
    'an id and a time in the wrong order': encodeCursor([id, time]),
    'one value too few': encodeCursor([time]),
    'a time that is a number': encodeCursor([AT, id]),
  })) {
    it(`D2.7: a cursor with ${name} is invalid_request at /cursor`, () => {
      expect(() => pageOf([], positionOf, { limit: 1, cursor }))
        .to.throw(AppError)
        .include({ kind: 'invalid_request', param: '/cursor' })
    })
  }

  it('D2.7: a page has at most limit runs; of the same millisecond the greater id comes first', () => {
    const tied = [run(4, AT), run(6, AT), run(5, AT)]
    for (const runs of [tied, tied.toReversed()]) {
      expect(pageOf(runs, positionOf, { limit: 2 }).page).to.deep.equal([run(6, AT), run(5, AT)])
    }
  })

  it('D2.7: a merged page has a cursor while any worker has more', () => {
    const cursor = encodeCursor([run(3).started_at, run(3).run_id])
    const pages = [
      { runs: [run(3)], next_cursor: cursor },
      { runs: [], next_cursor: null },
    ]
    expect(mergeRuns(pages, 1).next_cursor).to.equal(cursor)
    expect(mergeRuns(pages.toReversed(), 5).next_cursor).to.equal(cursor)
  })
})
