import { expect } from 'chai'
import { createLedger, type FinishedRun } from '../../../../shared/agent/customers/store/ledger.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { appendNext } from '../../../../shared/platform/store/append.ts'
import type { Collection, Store, Stored, WriteOptions } from '../../../../shared/platform/store/port.ts'
import { storeUnavailable } from '../../../../shared/platform/store/unavailable.ts'
import { failureOf } from '../../../support/failure-of.ts'

type Insert = (options: WriteOptions) => Promise<boolean>

/** An empty ledger whose inserts do what the test says. */
function ledgerWith(insert: Insert, retryForMs = 5_000) {
  const collection: Collection = {
    get: async () => undefined,
    insert: (_tenant, _doc, options = {}) => insert(options),
    insertMissing: () => expect.fail('entries were inserted at once'),
    replaceIfVersion: () => expect.fail('an entry was replaced'),
    update: () => expect.fail('an entry was changed'),
    delete: () => expect.fail('an entry was deleted'),
    deleteMany: () => expect.fail('entries were deleted'),
    page: async () => [],
    nextValue: () => expect.fail('values were listed'),
    total: () => expect.fail('entries were added up'),
  }
  const store: Store = { collection: () => collection, awayMs: () => 0, close: async () => {} }
  return createLedger(store, { retryForMs })
}

describe('appending to the ledger', () => {
  const run: FinishedRun = { run_id: 'run_1', input: 'question', output: 'answer' }
  it('P2: gives each write the end of the lease to read, as it is when the write leaves', async () => {
    const seen: number[] = []
    let until = Infinity
    const ledger = ledgerWith(async ({ mayWriteUntil = () => 0 }) => {
      seen.push(mayWriteUntil())
      until = -Infinity
      seen.push(mayWriteUntil())
      return true
    })
    await ledger.append(TENANT, 'anna', { ...run, mayWriteUntil: () => until })
    expect(seen).to.deep.equal([Infinity, -Infinity])
  })

  it('gives a write no more time than remains for its retries', async () => {
    const times: number[] = []
    const ledger = ledgerWith(async ({ withinMs = Number.NaN }) => times.push(withinMs) > 0, 1_000)
    await ledger.append(TENANT, 'anna', { ...run, mayWriteUntil: () => Infinity })
    await ledger.append(TENANT, 'anna', run)
    for (const time of times) expect(time).to.be.within(500, 1_000)
    expect(times).to.have.length(2)
  })

  it('tries again when the store does not answer', async () => {
    let tries = 0
    const ledger = ledgerWith(async () => {
      tries += 1
      if (tries === 1) throw storeUnavailable('down')
      return true
    })
    expect(await ledger.append(TENANT, 'anna', run)).to.equal(1)
    expect(tries).to.equal(2)
  })

  it('fails with the store’s error when it does not answer until the time is over', async () => {
    const cause = new Error('down')
    const ledger = ledgerWith(() => Promise.reject(storeUnavailable(cause)), 250)
    expect(await failureOf(ledger.append(TENANT, 'anna', run))).to.include({ kind: 'unavailable', cause })
  })

  it('fails at once with an error that is not an outage', async () => {
    let tries = 0
    const ledger = ledgerWith(() => {
      tries += 1
      return Promise.reject(new AppError('invalid_request', 'too long'))
    })
    expect(await failureOf(ledger.append(TENANT, 'anna', run))).to.include({ kind: 'invalid_request' })
    expect(tries).to.equal(1)
  })

  it('does not try again once the lease has expired', async () => {
    let tries = 0
    let until = Infinity
    const ledger = ledgerWith(() => {
      tries += 1
      until = -Infinity
      return Promise.reject(storeUnavailable('down'))
    })
    const failure = await failureOf(ledger.append(TENANT, 'anna', { ...run, mayWriteUntil: () => until }))
    expect(failure).to.include({ kind: 'unavailable', code: 'fenced' })
    expect(tries).to.equal(1)
  })

  it('does not write at all when earlier appends of the customer took all of its time', async () => {
    let tries = 0
    const ledger = ledgerWith(() => {
      tries += 1
      return Promise.reject(storeUnavailable('down'))
    }, 250)
    const [first, second] = [ledger.append(TENANT, 'anna', run), ledger.append(TENANT, 'anna', run)]
    await failureOf(first)
    const triesOfFirst = tries
    expect(await failureOf(second)).to.include({ kind: 'unavailable' })
    expect(tries).to.equal(triesOfFirst)
  })

  it('gives up as unavailable when it never gets a free number', async () => {
    let tries = 0
    const collection = {
      page: async () => [],
      get: async () => undefined,
      insert: async () => {
        tries += 1
        return false
      },
    } as unknown as Collection
    const addition = { within: { customer_id: 'anna' }, identity: { run_id: 'run_1' }, doc: {} }
    expect(await failureOf(appendNext(collection, TENANT, addition))).to.include({ kind: 'unavailable' })
    expect(tries).to.equal(100)
  })
})

describe('paging through the ledger', () => {
  /** A ledger with entries of these lengths, the first one being number 1; `reads` holds the limits of its reads. */
  function ledgerOf(lengths: readonly number[]) {
    const reads: number[] = []
    const stored: Stored[] = lengths.map((length, i) => ({
      doc: { seq: i + 1, run_id: `run_${i + 1}`, input: '', output: 'x'.repeat(length), timestamp: 'now' },
      version: 1,
    }))
    const page: Collection['page'] = async (_tenant, { after, limit }) => {
      reads.push(limit)
      const before = Number(after?.[0] ?? Infinity)
      return stored
        .filter(({ doc }) => Number(doc['seq']) < before)
        .toReversed()
        .slice(0, limit)
    }
    const store: Store = { collection: () => ({ page }) as Collection, awayMs: () => 0, close: async () => {} }
    return { ledger: createLedger(store), reads }
  }
  const same = (count: number, length = 1) => Array.from({ length: count }, () => length)

  it('reads batches of 2, 4, 8 and 10, and never more than it needs', async () => {
    for (const [count, limit, reads] of [
      [25, 5, [2, 3]],
      [25, 10, [2, 4, 4]],
      [25, 12, [2, 4, 6]],
      [25, 30, [2, 4, 8, 10, 6]],
      [20, 20, [2, 4, 8, 6]],
      [0, 10, [2]],
    ] as const) {
      const { ledger, reads: actual } = ledgerOf(same(count))
      const { entries } = await ledger.page(TENANT, 'anna', { limit })
      expect(entries, `${count} of ${limit}`).to.have.length(Math.min(count, limit))
      expect(actual, `${count} of ${limit}`).to.deep.equal(reads)
    }
  })

  it('ends a page with the entry that reaches 512 KiB as JSON', async () => {
    const full = ledgerOf(same(20, 2 ** 16))
    expect((await full.ledger.page(TENANT, 'anna', { limit: 20 })).entries).to.have.length(8)
    const almost = ledgerOf(same(20, 2 ** 16 - 1_000))
    expect((await almost.ledger.page(TENANT, 'anna', { limit: 20 })).entries).to.have.length(9)
  })

  it('returns a cursor exactly when older entries follow', async () => {
    const cursorAfter = async (count: number, limit: number) =>
      (await ledgerOf(same(count)).ledger.page(TENANT, 'anna', { limit })).next_cursor
    expect(await cursorAfter(0, 5)).to.equal(null)
    expect(await cursorAfter(5, 5)).to.equal(null)
    expect(await cursorAfter(5, 9)).to.equal(null)
    const cursor = await cursorAfter(6, 5)
    expect(cursor).to.be.a('string')
    const { ledger } = ledgerOf(same(6))
    const rest = await ledger.page(TENANT, 'anna', { limit: 5, cursor: String(cursor) })
    expect(rest.entries.map(({ seq }) => seq)).to.deep.equal([1])
    expect(rest.next_cursor).to.equal(null)
  })

  it('cuts input and output of more than 1,000,000 characters, and only those', async () => {
    const written: JsonObject[] = []
    const collection = {
      page: async () => [],
      insert: async (_tenant: string, doc: JsonObject) => written.push(doc) > 0,
    } as unknown as Collection
    const ledger = createLedger({ collection: () => collection, awayMs: () => 0, close: async () => {} })
    const whole = 'x'.repeat(1_000_000)
    await ledger.append(TENANT, 'anna', { run_id: 'run_1', input: whole, output: `${whole}y` })
    expect(written).to.have.length(1)
    expect(written[0]?.['input']).to.equal(whole)
    expect(written[0]?.['output']).to.equal(`${whole}\n[cut]`)
  })
})
