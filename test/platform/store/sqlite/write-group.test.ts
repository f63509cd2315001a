import { DatabaseSync } from 'node:sqlite'
import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { createOperationGuard } from '../../../../shared/platform/store/sqlite/guard.ts'
import { WriteGroup } from '../../../../shared/platform/store/sqlite/write-group.ts'
import { recordHealth } from '../record-health.ts'

describe('the writes of SQLite that go to the disk together', () => {
  let db: DatabaseSync
  let syncs: PromiseWithResolvers<void>[]
  let transactions: number
  let writes: WriteGroup

  beforeEach(() => {
    db = new DatabaseSync(':memory:')
    db.exec('CREATE TABLE notes (text TEXT UNIQUE)')
    syncs = []
    transactions = 0
    const exec = db.exec.bind(db)
    db.exec = (sql) => {
      if (sql.startsWith('BEGIN')) transactions++
      exec(sql)
    }
    const sync = () => {
      const each = Promise.withResolvers<void>()
      syncs.push(each)
      return each.promise
    }
    writes = new WriteGroup({ db, guard: createOperationGuard(recordHealth().health), sync })
  })
  afterEach(() => db.close())

  const insert = (text: string) => () => db.prepare('INSERT OR IGNORE INTO notes VALUES (?)').run(text).changes === 1
  const stored = () =>
    db
      .prepare('SELECT text FROM notes ORDER BY rowid')
      .all()
      .map(({ text }) => text)
  const nothing = () => false
  const turn = () => new Promise((resolve) => setImmediate(resolve))

  /** The first write, which is on its way to the disk. */
  const begin = () => writes.add(insert('first'))

  it('the first is done at once, and those that come while it goes to the disk are one transaction', async () => {
    const first = begin()
    expect(stored()).to.deep.equal(['first'])
    const ended: string[] = []
    const others = ['a', 'b', 'c'].map((text) => writes.add(insert(text)).then(() => ended.push(text)))
    expect(stored()).to.deep.equal(['first'])
    syncs[0]?.resolve()
    expect(await first).to.equal(true)
    await turn()
    expect(stored()).to.deep.equal(['first', 'a', 'b', 'c'])
    expect({ ended, transactions, syncs: syncs.length }).to.deep.equal({ ended: [], transactions: 1, syncs: 2 })
    syncs[1]?.resolve()
    await Promise.all(others)
    expect(ended).to.deep.equal(['a', 'b', 'c'])
  })

  it('one that has written nothing waits for no disk', async () => {
    expect(await writes.add(nothing)).to.equal(false)
    expect(syncs).to.have.length(0)
    const first = begin()
    const [same, other] = [writes.add(insert('first')), writes.add(insert('other'))]
    syncs[0]?.resolve()
    await first
    expect(await same).to.equal(false)
    expect(syncs).to.have.length(2)
    syncs[1]?.resolve()
    expect(await other).to.equal(true)
  })

  it('one that fails fails alone, and leaves nothing', async () => {
    const first = begin()
    const failing = writes.add(() => {
      insert('half')()
      throw new TypeError('bug')
    })
    const others = ['a', 'b'].map((text) => writes.add(insert(text)))
    const failure = failing.catch((cause: unknown) => cause)
    syncs[0]?.resolve()
    await first
    expect(await failure).to.be.instanceOf(TypeError)
    syncs[1]?.resolve()
    expect(await Promise.all(others)).to.deep.equal([true, true])
    expect(stored()).to.include.members(['first', 'a', 'b'])
  })

  it('a disk that fails makes those that it was for fail with 503, and the next ones go on', async () => {
    const first = begin().catch((cause: unknown) => cause)
    const second = writes.add(insert('second'))
    syncs[0]?.reject(new Error('EIO'))
    expect(await first)
      .to.be.instanceOf(AppError)
      .and.include({ kind: 'unavailable' })
    await turn()
    syncs[1]?.resolve()
    expect(await second).to.equal(true)
  })

  it('a file that is locked makes all fail that wait, after one try', async () => {
    const first = begin()
    let tries = 0
    const exec = db.exec.bind(db)
    db.exec = (sql) => {
      if (sql.startsWith('BEGIN') && ++tries) throw Object.assign(new Error('locked'), { errcode: 5 })
      exec(sql)
    }
    const waiting = ['a', 'b'].map((text) => writes.add(insert(text)).catch((cause: unknown) => cause))
    syncs[0]?.resolve()
    await first
    for (const failure of await Promise.all(waiting)) expect(failure).to.include({ kind: 'unavailable' })
    expect({ tries, stored: stored() }).to.deep.equal({ tries: 1, stored: ['first'] })
  })

  it('begins no transaction of more than 100', async () => {
    const first = begin()
    const waiting = Array.from({ length: 150 }, (_, i) => writes.add(insert(String(i))))
    for (const [i, expected] of [101, 151].entries()) {
      syncs[i]?.resolve()
      await turn()
      expect(stored()).to.have.length(expected)
    }
    syncs[2]?.resolve()
    await Promise.all([first, ...waiting])
  })
})
