import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'chai'
import { COLLECTIONS } from '../../../../services/wiring/collections.ts'
import { createLedger, LEDGER } from '../../../../shared/agent/customers/store/ledger.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import type { CollectionSpec } from '../../../../shared/platform/store/port.ts'
import { SqliteCollection } from '../../../../shared/platform/store/sqlite/collection.ts'
import { createTables, openSqliteStore } from '../../../../shared/platform/store/sqlite/sqlite.ts'
import { WriteGroup } from '../../../../shared/platform/store/sqlite/write-group.ts'
import { Child } from '../../../support/child.ts'
import { elapsedMs } from '../../../support/elapsed.ts'
import { useTempFolder } from '../../../support/temp-folder.ts'

const WRITER = 'test/agent/customers/store/append-forever.ts'
const MANY = 300

describe('the file of the SQLite store', () => {
  const dir = useTempFolder({ perTest: true })
  let file: string
  beforeEach(async () => {
    file = join(dir.path, 'data', 'agent-engine.db')
  })

  const open = () => openSqliteStore({ file, collections: COLLECTIONS })

  it('holds every entry that was acknowledged before a SIGKILL, once and without a gap', async () => {
    const acknowledged: string[][] = []
    for (let round = 1; round <= 2; round++) {
      const writer = new Child(process.execPath, [WRITER, '--file', file], {})
      await writer.line(new RegExp(`^acknowledged c\\d run_\\d_\\d+ ${round * MANY}$`))
      await writer.end('SIGKILL')
      acknowledged.push(...writer.lines.map((line) => line.split(' ').slice(1)))
    }
    await using store = await disposable()
    const ledger = createLedger(store)
    for (let c = 0; c < 8; c++) {
      const own = acknowledged.filter(([customer]) => customer === `c${c}`)
      const entries = await readAll(ledger, `c${c}`)
      expect(entries.map(({ seq }) => seq)).to.deep.equal(entries.map((_, i) => i + 1))
      for (const [, run, seq] of own) expect(entries[Number(seq) - 1]?.run_id).to.equal(run)
      expect(new Set(entries.map(({ run_id }) => run_id)).size).to.equal(entries.length)
    }
  })

  async function disposable() {
    const store = await open()
    return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() })
  }

  it('can be read by its owner only, and its folder is created', async () => {
    const store = await open()
    for (const name of [file, `${file}-wal`, `${file}-shm`]) expect((await stat(name)).mode & 0o777).to.equal(0o600)
    await store.close()
  })

  it('makes operations fail with 503 within a second while another process locks it', async () => {
    await using store = await disposable()
    const other = new DatabaseSync(file)
    other.exec('BEGIN IMMEDIATE')
    const start = elapsedMs()
    const entries = store.collection(LEDGER)
    const doc = { customer_id: 'anna', seq: 1, run_id: 'run_1' }
    const failure = await entries.insert(DEFAULT_TENANT, doc).catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'unavailable', status: 503 })
    expect((failure as AppError).message).to.not.include('database')
    expect(elapsedMs() - start).to.be.below(1000)
    expect(store.awayMs()).to.be.above(0)
    other.exec('ROLLBACK')
    other.close()
    expect(await entries.insert(DEFAULT_TENANT, doc)).to.equal(true)
    expect(store.awayMs()).to.equal(0)
  })

  it('is closed with its log when the store is closed', async () => {
    const openFiles = async () => (await readdir('/proc/self/fd')).length
    const before = await openFiles()
    const store = await open()
    expect(await openFiles()).to.be.above(before)
    await store.close()
    expect(await openFiles()).to.equal(before)
  })

  it('holds no expired document after a later insert', async () => {
    const keys: CollectionSpec = { name: 'keys', key: ['id'], ttlSecs: 60 }
    let clock = Date.now()
    const store = await openSqliteStore({ file, collections: [keys], now: () => clock })
    const collection = store.collection(keys)
    for (const id of ['a', 'b', 'c']) await collection.insert(DEFAULT_TENANT, { id })
    clock += 60_001
    await collection.insert(DEFAULT_TENANT, { id: 'd' })
    await store.close()
    const db = new DatabaseSync(file)
    expect(db.prepare('SELECT id FROM keys').all()).to.deep.equal([Object.assign(Object.create(null), { id: 'd' })])
    db.close()
  })

  it('takes the key of an expired document again, however many have expired', async () => {
    const keys: CollectionSpec = { name: 'keys', key: ['id'], ttlSecs: 60 }
    let clock = Date.now()
    const store = await openSqliteStore({ file, collections: [keys], now: () => clock })
    const collection = store.collection(keys)
    for (let id = 0; id < 40; id++) await collection.insert(DEFAULT_TENANT, { id })
    clock += 60_001
    expect(await collection.insert(DEFAULT_TENANT, { id: 39 })).to.equal(true)
    expect(await collection.insert(DEFAULT_TENANT, { id: 39 })).to.equal(false)
    await store.close()
  })

  it('is left unchanged, and the store does not open, when it is not a database', async () => {
    await (await open()).close()
    await writeFile(file, 'not a database at all, but somebody’s notes '.repeat(40))
    expect(await open().catch(String)).to.include('not a database')
    expect(await readFile(file, 'utf8')).to.match(/^not a database/)
  })
})

describe('the flush of the log to the disk', () => {
  const open = (db: DatabaseSync, sync: () => Promise<void>) => {
    const guard = <T>(operation: () => T) => operation()
    return new SqliteCollection(LEDGER, { db, guard, writes: new WriteGroup({ db, guard, sync }), now: Date.now })
  }

  it('makes a write fail with 503 when it fails, but not a write that changed nothing', async () => {
    const db = new DatabaseSync(':memory:')
    createTables(db, [LEDGER])
    const entries = open(db, () => Promise.reject(new Error('EIO')))
    const doc = { customer_id: 'anna', seq: 1, run_id: 'run_1' }
    const failure = await entries.insert(DEFAULT_TENANT, doc).catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'unavailable' })
    expect(await entries.insert(DEFAULT_TENANT, doc)).to.equal(false)
    expect(await entries.delete(DEFAULT_TENANT, { customer_id: 'anna', seq: 2 })).to.equal(false)
    db.close()
  })

  it('waits for the disk after a write with the durability `full` only', async () => {
    const db = new DatabaseSync(':memory:')
    createTables(db, [LEDGER])
    let flushes = 0
    const entries = open(db, async () => void flushes++)
    const doc = { customer_id: 'anna', seq: 1, run_id: 'run_1' }
    const key = { customer_id: 'anna', seq: 1 }
    for (const [durability, expected] of [
      ['weak', 0],
      ['ordered', 0],
      ['full', 5],
      [undefined, 5],
    ] as const) {
      const options = durability && { durability }
      flushes = 0
      expect(await entries.insert(DEFAULT_TENANT, doc, options)).to.equal(true)
      expect(await entries.insert(DEFAULT_TENANT, doc, options)).to.equal(false)
      expect(await entries.replaceIfVersion(DEFAULT_TENANT, { doc, version: 1 }, options)).to.equal(true)
      expect(await entries.replaceIfVersion(DEFAULT_TENANT, { doc, version: 1 }, options)).to.equal(false)
      expect(await entries.update(DEFAULT_TENANT, { key, where: {}, set: { note: 1 } }, options)).to.include({
        version: 3,
      })
      await entries.insertMissing([{ tenant: DEFAULT_TENANT, doc: { ...doc, seq: 2 } }], options)
      await entries.deleteMany(DEFAULT_TENANT, [key, { ...key, seq: 2 }], options)
      await entries.deleteMany(DEFAULT_TENANT, [key], options)
      expect(flushes).to.equal(expected)
    }
    db.close()
  })
})

type Reader = { page: ReturnType<typeof createLedger>['page'] }

async function readAll(ledger: Reader, customer: string) {
  const entries: Awaited<ReturnType<Reader['page']>>['entries'] = []
  let cursor: string | null | undefined
  do {
    const page = await ledger.page(DEFAULT_TENANT, customer, { limit: 200, ...(cursor && { cursor }) })
    entries.push(...page.entries)
    cursor = page.next_cursor
  } while (cursor !== null)
  return entries.reverse()
}
