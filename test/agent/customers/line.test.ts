import { expect } from 'chai'
import { CustomerLine, type HistoryLimits } from '../../../shared/agent/customers/line.ts'
import type { LedgerEntry } from '../../../shared/agent/customers/store/ledger.ts'
import { DEFAULT_TENANT as tenant } from '../../../shared/kernel/tenant.ts'

/** A customer with an empty ledger. `write` adds entries; `asked` lists the counts of all reads. */
function customer(limits: Partial<HistoryLimits> = {}) {
  const entries: LedgerEntry[] = []
  const asked: number[] = []
  const write = (count: number) => {
    for (let n = 0; n < count; n++) {
      const seq = entries.length + 1
      entries.push({ seq, run_id: `run_${seq}`, input: `question ${seq}`, output: `answer ${seq}`, timestamp: 'now' })
    }
  }
  const gate = { opened: Promise.resolve() }
  const ledger = {
    append: async () => 0,
    page: async () => ({ entries: [], next_cursor: null }),
    async last(_tenant: unknown, _customer: string, count: number) {
      asked.push(count)
      const found = entries.slice(-count).reverse()
      await gate.opened
      return found
    },
  }
  const kept: string[] = []
  const memories = {
    async last(_tenant: unknown, customerId: string, count: number) {
      const found = kept.slice(-count).reverse()
      return found.map((content) => ({ id: customerId, content, created_at: 'now' }))
    },
    async add(_tenant: unknown, customerId: string, { content }: { content: string }) {
      kept.push(content)
      return { id: customerId, content, created_at: 'now' }
    },
  }
  const line = new CustomerLine(
    { ledger, memories },
    { entries: 3, chars: 4_000, ...limits },
    { tenant, customerId: 'c' },
  )
  return { line, write, asked, gate, kept }
}

const questions = (background: string) => background.match(/question \d+/g)

describe('the background of a customer’s line', () => {
  it('api.md Per-customer line: holds the last N entries, oldest first, on the first read and on later ones', async () => {
    const { line, write } = customer()
    expect(await line.background()).to.match(/first contact/)
    write(5)
    expect(questions(await line.background())).to.deep.equal(['question 3', 'question 4', 'question 5'])
    write(1)
    expect(questions(await line.background())).to.deep.equal(['question 4', 'question 5', 'question 6'])
    write(7)
    expect(questions(await line.background())).to.deep.equal(['question 11', 'question 12', 'question 13'])
  })

  it('D1.3 CUSTOMER_HISTORY_CHARS: holds the ends of long entries', async () => {
    const { line, write } = customer({ chars: 150 })
    write(2)
    const background = await line.background()
    expect(questions(background)).to.deep.equal(['question 1', 'question 2'])
    write(1)
    expect(await line.background()).to.match(
      /answer 2"}\n{"time":"now","customer":"question 3","answer":"answer 3"}\n<\//,
    )
    const short = customer({ chars: 16 })
    short.write(2)
    for (const _ of [1, 2]) expect(await short.line.background()).to.match(/\n{"answer":"r 2"}\n<\//)
  })

  it('reads only as many entries as it needs, and later only new ones', async () => {
    const { line, write, asked } = customer()
    write(1_000)
    for (const fresh of [0, 0, 1, 2]) {
      write(fresh)
      await line.background()
    }
    expect(asked).to.deep.equal([3, 1, 1, 1, 2])
  })

  it('D4.14: holds every entry once when several runs begin at the same time', async () => {
    const { line, write, gate } = customer()
    write(2)
    const { promise, resolve } = Promise.withResolvers<void>()
    gate.opened = promise
    const both = [line.background(), line.background()]
    resolve()
    for (const background of await Promise.all(both)) {
      expect(questions(background)).to.deep.equal(['question 1', 'question 2'])
    }
  })

  it('api.md Per-customer line: throws unavailable in time when the store does not answer', async () => {
    const { line, gate } = customer({ readMs: 10 })
    gate.opened = new Promise(() => {})
    const failure = await line.background().catch((cause: unknown) => cause)
    expect(failure).to.include({ kind: 'unavailable' })
  })

  it('D5.3: holds the last 50 memory entries, oldest first', async () => {
    const { line, kept } = customer()
    for (let n = 1; n <= 51; n++) kept.push(`memory ${n}.`)
    const found = (await line.background()).match(/memory \d+\./g)
    expect(found).to.deep.equal(Array.from({ length: 50 }, (_, i) => `memory ${i + 2}.`))
  })

  it('D1.3 CUSTOMER_HISTORY_ENTRIES: does not read the ledger when it holds no entries', async () => {
    const { line, write, asked } = customer({ entries: 0 })
    write(2)
    expect(await line.background()).to.match(/first contact/)
    expect(asked).to.deep.equal([])
  })

  it('reads again after an attempt that came too late', async () => {
    const { line, write, gate } = customer({ readMs: 10 })
    write(1)
    const { promise, resolve } = Promise.withResolvers<void>()
    gate.opened = promise
    await line.background().catch(() => {})
    resolve()
    expect(questions(await line.background())).to.deep.equal(['question 1'])
  })
})

describe('a customer’s line as Dream’s memory', () => {
  it('D5.3: its history is the last 200 entries of the ledger, oldest first', async () => {
    const { line, write, asked } = customer()
    expect(await line.history()).to.equal('')
    write(201)
    const history = await line.history()
    expect(asked).to.deep.equal([200, 200])
    expect(questions(history)).to.deep.equal(Array.from({ length: 200 }, (_, i) => `question ${i + 2}`))
    expect(history.split('\n')[0]).to.equal('{"time":"now","customer":"question 2","answer":"answer 2"}')
  })

  it('D5.3: keeps every entry, in order', async () => {
    const { line, kept } = customer()
    await line.keep(['one', 'two'])
    expect(kept).to.deep.equal(['one', 'two'])
    expect(await line.background()).to.include('{"memory":"one"}\n{"memory":"two"}')
  })
})
