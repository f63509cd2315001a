import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import { createLedger, type Ledger } from '../../shared/agent/customers/store/ledger.ts'
import { createMemoryEntries, MEMORY_ENTRIES } from '../../shared/agent/customers/store/memory-entries.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { Store } from '../../shared/platform/store/port.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import type { OpenStore } from './store.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')

/** The tests of the ledger and the memory entries, which every store passes. */
export function ledgerContract(open: OpenStore): void {
  let ledger: Ledger
  let customers = 0
  const newCustomer = () => `customer ${++customers}`
  const run = (n: number) => ({ run_id: `run_${n}`, input: `question ${n}`, output: `answer ${n}` })
  const seqsOf = (entries: { seq: number }[]) => entries.map(({ seq }) => seq)
  const fill = async (customer: string, count: number) => {
    for (let n = 1; n <= count; n++) await ledger.append(TENANT, customer, run(n))
  }
  const store = useOpened(() => open(COLLECTIONS))
  before(async () => {
    ledger = createLedger(store, { now: () => new Date('2026-11-22T10:00:00Z') })
  })

  it('D4.14: entries are numbered from 1 and returned newest first, with exactly five fields', async () => {
    const customer = newCustomer()
    expect(await ledger.append(TENANT, customer, run(1))).to.equal(1)
    expect(await ledger.append(TENANT, customer, run(2))).to.equal(2)
    const timestamp = '2026-11-22T10:00:00.000Z'
    expect(await ledger.page(TENANT, customer, { limit: 50 })).to.deep.equal({
      entries: [
        { seq: 2, ...run(2), timestamp },
        { seq: 1, ...run(1), timestamp },
      ],
      next_cursor: null,
    })
  })

  it('D4.14: the list of an unknown customer and of another tenant’s customer is empty', async () => {
    const customer = newCustomer()
    await fill(customer, 1)
    const empty = { entries: [], next_cursor: null }
    expect(await ledger.page(TENANT, 'nobody', { limit: 50 })).to.deep.equal(empty)
    expect(await ledger.page(OTHER, customer, { limit: 50 })).to.deep.equal(empty)
    expect(await ledger.last(OTHER, customer, 10)).to.deep.equal([])
    expect(await ledger.append(OTHER, customer, run(1))).to.equal(1)
  })

  it('D2.7: pages of any size return every entry once, and the last page has no cursor', async () => {
    const customer = newCustomer()
    await fill(customer, 25)
    for (const limit of [1, 7, 10, 12, 25, 200]) {
      const seen: number[] = []
      let cursor: string | null | undefined
      do {
        const page = await ledger.page(TENANT, customer, { limit, ...(cursor && { cursor }) })
        expect(page.entries.length).to.be.within(1, limit)
        seen.push(...seqsOf(page.entries))
        cursor = page.next_cursor
      } while (cursor !== null)
      expect(seen).to.deep.equal(Array.from({ length: 25 }, (_, i) => 25 - i))
    }
  })

  it('D2.7: a cursor that no list returned is refused with 400', async () => {
    for (const cursor of [
      '',
      'x',
      '!!!',
      Buffer.from('["a"]').toString('base64url'),
      Buffer.from('[{"$gt":0}]').toString('base64url'),
    ]) {
      const failure = await ledger.page(TENANT, 'anna', { limit: 5, cursor }).catch((cause: unknown) => cause)
      expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'invalid_request', param: '/cursor' })
    }
  })

  it('`last` returns the newest entries, newest first', async () => {
    const customer = newCustomer()
    await fill(customer, 12)
    expect(seqsOf(await ledger.last(TENANT, customer, 10))).to.deep.equal([12, 11, 10, 9, 8, 7, 6, 5, 4, 3])
    expect(seqsOf(await ledger.last(TENANT, customer, 100))).to.have.length(12)
  })

  it('a run is stored once, however often and by whichever process it is appended', async () => {
    const customer = newCustomer()
    await fill(customer, 2)
    const again = createLedger(store)
    const seqs = await Promise.all(
      Array.from({ length: 10 }, (_, i) => (i % 2 ? again : ledger).append(TENANT, customer, run(3))),
    )
    expect(new Set(seqs)).to.deep.equal(new Set([3]))
    expect(await again.append(TENANT, customer, { ...run(1), output: 'changed' })).to.equal(1)
    const { entries } = await ledger.page(TENANT, customer, { limit: 50 })
    expect(entries.map(({ output }) => output)).to.deep.equal(['answer 3', 'answer 2', 'answer 1'])
  })

  it('100 concurrent appends of one customer get the numbers 1 to 100 without a gap', async () => {
    const customer = newCustomer()
    const seqs = await Promise.all(Array.from({ length: 100 }, (_, n) => ledger.append(TENANT, customer, run(n))))
    expect(seqs.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 100 }, (_, i) => i + 1))
  })

  it('100 concurrent appends of one customer by several processes get the numbers 1 to 100 without a gap', async () => {
    const customer = newCustomer()
    const processes = Array.from({ length: 4 }, () => createLedger(store))
    const mayWriteUntil = () => performance.now() + 3_000
    const seqs = await Promise.all(
      processes.flatMap((each, p) =>
        Array.from({ length: 25 }, (_, n) => each.append(TENANT, customer, { ...run(100 * p + n), mayWriteUntil })),
      ),
    )
    expect(seqs.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 100 }, (_, i) => i + 1))
    expect(seqsOf((await ledger.page(TENANT, customer, { limit: 200 })).entries)).to.have.length(100)
  })

  it('a process whose lease has expired writes nothing', async () => {
    const customer = newCustomer()
    const failure = await ledger
      .append(TENANT, customer, { ...run(1), mayWriteUntil: () => -Infinity })
      .catch((cause) => cause)
    expect(failure).to.include({ kind: 'unavailable', code: 'fenced' })
    expect(await ledger.last(TENANT, customer, 1)).to.deep.equal([])
    expect(
      await ledger.append(TENANT, customer, { ...run(1), mayWriteUntil: () => performance.now() + 3_000 }),
    ).to.equal(1)
  })

  it('a lease that expires between reading the last number and the write keeps the entry from being stored', async () => {
    const customer = newCustomer()
    let until = Infinity
    const expiring = createLedger(withHook(store, () => (until = -Infinity)))
    const failure = await expiring
      .append(TENANT, customer, { ...run(1), mayWriteUntil: () => until })
      .catch((cause) => cause)
    expect(failure).to.include({ kind: 'unavailable', code: 'fenced' })
    expect(await ledger.last(TENANT, customer, 1)).to.deep.equal([])
  })

  it('P2: a process that is paused after a check of its lease writes nothing when the lease has expired meanwhile', async () => {
    const customer = newCustomer()
    const until = performance.now() + 200
    const mayWriteUntil = () => {
      if (performance.now() < until) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
      return until
    }
    const failure = await ledger.append(TENANT, customer, { ...run(1), mayWriteUntil }).catch((cause) => cause)
    expect(failure).to.include({ kind: 'unavailable', code: 'fenced' })
    expect(await ledger.last(TENANT, customer, 1)).to.deep.equal([])
  })

  it('an output that is too long for a store is cut', async () => {
    const customer = newCustomer()
    await ledger.append(TENANT, customer, { ...run(1), output: '\0'.repeat(3_000_000) })
    const [entry] = await ledger.last(TENANT, customer, 1)
    expect(entry?.output).to.have.length(1_000_000 + '\n[cut]'.length)
  })

  it('a page of long entries ends early, and its cursor continues after them', async () => {
    const customer = newCustomer()
    for (let n = 1; n <= 12; n++) await ledger.append(TENANT, customer, { ...run(n), output: 'x'.repeat(250_000) })
    const { entries, next_cursor } = await ledger.page(TENANT, customer, { limit: 12 })
    expect(entries).to.have.length(3)
    const rest = await ledger.page(TENANT, customer, { limit: 12, cursor: next_cursor ?? '' })
    expect(seqsOf([...entries, ...rest.entries])).to.deep.equal(Array.from({ length: 6 }, (_, i) => 12 - i))
  })

  it('the length of a page is that of its JSON, in which a character may take six bytes', async () => {
    const customer = newCustomer()
    for (let n = 1; n <= 3; n++) await ledger.append(TENANT, customer, { ...run(n), output: '\0'.repeat(100_000) })
    const { entries, next_cursor } = await ledger.page(TENANT, customer, { limit: 3 })
    expect(seqsOf(entries)).to.deep.equal([3])
    const rest = await ledger.page(TENANT, customer, { limit: 3, cursor: next_cursor ?? '' })
    expect(seqsOf(rest.entries)).to.deep.equal([2])
  })

  memoryContract(() => store)
}

/** The store, with `afterPage` called after each page that is read. */
function withHook(store: Store, afterPage: () => void): Store {
  const collection: Store['collection'] = (spec) => {
    const entries = store.collection(spec)
    return {
      get: (...args) => entries.get(...args),
      insert: (...args) => entries.insert(...args),
      insertMissing: (...args) => entries.insertMissing(...args),
      replaceIfVersion: (...args) => entries.replaceIfVersion(...args),
      update: (...args) => entries.update(...args),
      delete: (...args) => entries.delete(...args),
      deleteMany: (...args) => entries.deleteMany(...args),
      async page(...args) {
        const page = await entries.page(...args)
        afterPage()
        return page
      },
      nextValue: (...args) => entries.nextValue(...args),
      total: (...args) => entries.total(...args),
    }
  }
  return { collection, awayMs: () => store.awayMs(), close: () => store.close() }
}

function memoryContract(store: () => Store): void {
  const memory = () => createMemoryEntries(store())

  it('D5.3: memory entries of a customer are returned newest first, and only to its tenant', async () => {
    const first = await memory().add(TENANT, 'dreamer', { content: 'likes tea' })
    const second = await memory().add(TENANT, 'dreamer', { content: 'lives in Rome', run_id: 'run_2' })
    expect(first.id).to.match(/^mem_[0-9a-f]{32}$/)
    expect(first).to.have.keys('id', 'content', 'created_at')
    expect(second).to.include({ content: 'lives in Rome', run_id: 'run_2' })
    expect(await memory().last(TENANT, 'dreamer', 10)).to.deep.equal([second, first])
    expect(await memory().last(TENANT, 'dreamer', 1)).to.deep.equal([second])
    expect(await memory().last(OTHER, 'dreamer', 10)).to.deep.equal([])
  })

  it('a customer’s memory keeps the newest 100 entries, also when many are added at once', async () => {
    const entries = memory()
    const add = (n: number) => entries.add(TENANT, 'elephant', { content: `fact ${n}` })
    await Promise.all(Array.from({ length: 103 }, (_, n) => add(n)))
    const kept = (await entries.last(TENANT, 'elephant', 1000)).map(({ content }) => content)
    expect(kept).to.deep.equal(Array.from({ length: 100 }, (_, i) => `fact ${102 - i}`))
    const query = { where: { customer_id: 'elephant' }, limit: 1000 }
    expect(await store().collection(MEMORY_ENTRIES).page(TENANT, query)).to.have.length(100)
  })

  it('an entry that is empty or longer than 8 KiB is refused', async () => {
    for (const content of ['', ' \n', '😀'.repeat(2049)]) {
      const failure = await memory()
        .add(TENANT, 'x', { content })
        .catch((cause: unknown) => cause)
      expect(failure).to.include({ kind: 'invalid_request' })
    }
    const longest = '😀'.repeat(2048)
    expect(await memory().add(TENANT, 'x', { content: longest })).to.include({ content: longest })
  })
}
