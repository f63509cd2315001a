import { expect } from 'chai'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { type SearchFilter, searchDispatches } from '../../../../shared/work/flows/history/search.ts'
import type { Dispatch, DispatchOutput, DispatchStore } from '../../../../shared/work/flows/port.ts'
import { DAY_MS, FAILED, INPUT, newDispatch, OK, OUTPUT, START } from '../../../contract/dispatch-setup.ts'
import { useHistory } from '../history-setup.ts'

type Searched = Pick<DispatchStore, 'list' | 'input' | 'output'>

/** Records that are not stored: `list` pages them by the number in their trace id, and each read of payloads is counted. */
function manyRecords(count: number, payload = '') {
  const seen = { listed: 0, read: 0 }
  const records = Array.from({ length: count }, (_, n) => newDispatch(START - n, { trace_id: `trace_${n}` }))
  const dispatches: Searched = {
    async list(_tenant, { limit, cursor }) {
      const after =
        cursor === undefined ? -1 : Number(/trace_(\d+)/.exec(Buffer.from(cursor, 'base64url').toString())?.[1])
      const page = records.slice(after + 1, after + 1 + limit)
      seen.listed += page.length
      const hasMore = after + 1 + limit < count
      return { dispatches: page, next_cursor: hasMore ? cursorOf(page.at(-1) ?? expect.fail()) : null }
    },
    async input() {
      seen.read++
      return { text: payload }
    },
    output: async () => undefined,
  }
  return { dispatches, seen }
}

const cursorOf = ({ started_at, trace_id }: Dispatch) =>
  Buffer.from(JSON.stringify([Date.parse(started_at), trace_id])).toString('base64url')

const numbersOf = (dispatches: readonly Dispatch[]) => dispatches.map(({ trace_id }) => Number(trace_id.slice(6)))

describe('the search of the history', () => {
  const history = useHistory()
  beforeEach(() => {
    history.clock.ms += DAY_MS
  })
  const search = async (filter: SearchFilter, more: { limit?: number; cursor?: string } = {}) => {
    const query = { kind: 'run' as const, limit: 50, sinceMs: history.clock.ms - DAY_MS / 2, ...more }
    const { dispatches } = await searchDispatches(history.dispatches, TENANT, { query, filter })
    return dispatches.map(({ trace_id }) => trace_id)
  }

  it('D22.1: filters by model, subject, key, duration, and by the instance that was named or served', async () => {
    const one = await history.end(await history.queue({ model: 'm-a', subject: 'ada', idempotency_key: 'k-1' }))
    const two = await history.end(await history.queue({ provider_instance: 'spare' }), {
      ...OK,
      served_instance: 'third',
    })
    const open = await history.queue({ provider_instance: 'other' })
    const ids: Record<string, string> = { one: one.trace_id, two: two.trace_id, open: open.trace_id }
    const cases: readonly (readonly [SearchFilter, string[]])[] = [
      [{ model: 'm-a' }, ['one']],
      [{ model: 'm1' }, ['open', 'two']],
      [{ model: 'm-' }, []],
      [{ subject: 'ada' }, ['one']],
      [{ key: 'k-1' }, ['one']],
      [{ key: 'K-1' }, []],
      [{ instance: 'main' }, ['one']],
      [{ instance: 'spare' }, ['two']],
      [{ instance: 'third' }, ['two']],
      [{ instance: 'other' }, ['open']],
      [{ minMs: 2_000 }, ['two', 'one']],
      [{ minMs: 2_001 }, []],
      [{ minMs: 0, model: 'm1' }, ['two']],
      [{ model: 'm1', instance: 'main' }, []],
    ]
    for (const [filter, names] of cases)
      expect(await search(filter), JSON.stringify(filter)).to.deep.equal(names.map((name) => ids[name]))
  })

  it('D22.1: q is a text in the name of the flow, the error, the input or the output, whatever its case', async () => {
    const output: DispatchOutput = {
      ...OUTPUT,
      raw_output: 'said Something',
      output: { amount: 1_204.5, deep: [{ Total: true }] },
    }
    const ok = await history.end(
      await history.queue({ flow: { name: 'invoices', uid: 'flow_2', version: 1 } }),
      OK,
      output,
    )
    const failed = await history.end(await history.queue(), FAILED)
    const both = [failed.trace_id, ok.trace_id]
    for (const [q, ids] of [
      ['INVOICES', [ok.trace_id]],
      ['main agent FAILED', [failed.trace_id]],
      [INPUT.text.toUpperCase(), both],
      ['a.b', both],
      ['something', [ok.trace_id]],
      ['1204.5', [ok.trace_id]],
      ['total', [ok.trace_id]],
      ['true', [ok.trace_id]],
      ['nothing of it', []],
    ] as const)
      expect(await search({ q }), q).to.deep.equal(ids)
  })

  it('payloads that are not to be kept are not searched, not even while the answer is still stored', async () => {
    await history.end(await history.queue({ keeps_payloads: false }))
    expect(await search({ q: 'long text' })).to.deep.equal([])
    expect(await search({ q: 'short' })).to.deep.equal([])
    expect(await search({ q: 'summarize' })).to.have.length(1)
  })

  it('pages of any size show every record that passes once, and the last one has no next', async () => {
    const { dispatches } = manyRecords(450)
    for (const limit of [1, 7, 200]) {
      const found: number[] = []
      let cursor: string | undefined
      do {
        const query = { kind: 'run' as const, limit, cursor }
        const page = await searchDispatches(dispatches, TENANT, { query, filter: { subject: 'anna' } })
        expect(page.dispatches.length).to.be.within(1, limit)
        found.push(...numbersOf(page.dispatches))
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
      expect(found).to.deep.equal(Array.from({ length: 450 }, (_, n) => n))
    }
  })

  it('one request looks at 2,000 records, and the next one goes on behind them', async () => {
    const { dispatches, seen } = manyRecords(2_500)
    const filter = { subject: 'nobody' }
    const first = await searchDispatches(dispatches, TENANT, { query: { kind: 'run', limit: 5 }, filter })
    expect([first.dispatches, seen.listed]).to.deep.equal([[], 2_000])
    expect(first.next_cursor).to.equal(cursorOf(newDispatch(START - 1_999, { trace_id: 'trace_1999' })))
    const query = { kind: 'run' as const, limit: 5, cursor: first.next_cursor ?? '' }
    expect(await searchDispatches(dispatches, TENANT, { query, filter })).to.deep.equal({
      dispatches: [],
      next_cursor: null,
    })
    expect(seen.listed).to.equal(2_500)
  })

  it('one request reads the payloads of 200 records, or 32 million characters of them', async () => {
    const query = { kind: 'run' as const, limit: 5 }
    const small = manyRecords(300)
    const first = await searchDispatches(small.dispatches, TENANT, { query, filter: { q: 'absent' } })
    expect(small.seen.read).to.equal(200)
    expect(first.next_cursor).to.equal(cursorOf(newDispatch(START - 199, { trace_id: 'trace_199' })))
    const large = manyRecords(10, 'x'.repeat(9_000_000))
    await searchDispatches(large.dispatches, TENANT, { query, filter: { q: 'absent' } })
    expect(large.seen.read).to.equal(4)
  })

  it('a history without records has no next page', async () => {
    const { dispatches } = manyRecords(0)
    const found = await searchDispatches(dispatches, TENANT, { query: { kind: 'run', limit: 5 }, filter: { q: 'x' } })
    expect(found).to.deep.equal({ dispatches: [], next_cursor: null })
  })
})
