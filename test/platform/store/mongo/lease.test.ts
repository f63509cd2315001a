import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { LEDGER } from '../../../../shared/agent/customers/store/ledger.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import { ServerClock } from '../../../../shared/platform/store/mongo/server-clock.ts'
import { insertBefore } from '../../../../shared/platform/store/mongo/timely-insert.ts'
import { useOpened } from '../../../support/fixture.ts'
import { useMongo } from '../../../support/mongo.ts'

const row = (seq: number, fields: object = {}) => ({
  ...{ tenant: TENANT, version: 1, doc: '{"$set":1}', customer_id: 'anna', seq, run_id: `run_${seq}`, ...fields },
})
const KEY = ['tenant', 'customer_id', 'seq']
const { signal } = new AbortController()

describe('a write to MongoDB under a lease', () => {
  const mongo = useMongo()
  const client = useOpened(() => new MongoClient(mongo.url).connect())

  /** The ledger's rows, with their indexes. */
  async function openRows() {
    const database = mongo.newDatabase()
    const store = await openMongoStore({ url: mongo.url, database, collections: [LEDGER] })
    const rows = client.db(database).collection(LEDGER.name)
    const stored = () =>
      rows
        .find({}, { projection: { _id: 0 } })
        .sort({ seq: 1 })
        .toArray()
    return { store, rows, stored }
  }
  const soon = () => new Date(Date.now() + 60_000)

  it('P2: a write that reaches MongoDB after the end of the lease is refused by MongoDB, however early it was checked', async () => {
    const { store, rows, stored } = await openRows()
    const late = insertBefore(rows, row(1), { key: KEY, until: new Date(Date.now() - 1), signal })
    expect(await late.catch((cause: unknown) => cause))
      .to.be.instanceOf(AppError)
      .and.include({ kind: 'unavailable' })
    expect(await stored()).to.deep.equal([])
    await store.close()
  })

  it('P2: a write in time is stored as it is, and a row that is there already is left unchanged, late or not', async () => {
    const { store, rows, stored } = await openRows()
    expect(await insertBefore(rows, row(1), { key: KEY, until: soon(), signal })).to.equal(true)
    expect(await insertBefore(rows, row(1, { doc: 'other' }), { key: KEY, until: soon(), signal })).to.equal(false)
    expect(await insertBefore(rows, row(1, { doc: 'other' }), { key: KEY, until: new Date(0), signal })).to.equal(false)
    expect(await stored()).to.deep.equal([row(1)])
    await store.close()
  })

  it('P2: a write in time that breaks another unique index is a duplicate', async () => {
    const { store, rows, stored } = await openRows()
    await insertBefore(rows, row(1), { key: KEY, until: soon(), signal })
    const again = insertBefore(rows, row(2, { run_id: 'run_1' }), { key: KEY, until: soon(), signal })
    expect(await again.catch((cause: unknown) => cause)).to.include({ code: 11_000 })
    expect(await stored()).to.have.length(1)
    await store.close()
  })

  it('P2: the store maps the end of the lease to the clock of MongoDB', async () => {
    const { store, stored } = await openRows()
    const entry = { customer_id: 'anna', seq: 1, run_id: 'run_1' }
    const ledger = store.collection(LEDGER)
    let reads = 0
    // Held at the check before the sending, but over when the command is made: as if the process had been paused in between.
    const mayWriteUntil = () => (reads++ === 0 ? performance.now() - 1 : Infinity)
    const failure = await ledger.insert(TENANT, entry, { mayWriteUntil }).catch((cause: unknown) => cause)
    expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'unavailable' })
    expect(await stored()).to.deep.equal([])
    expect(await ledger.insert(TENANT, entry, { mayWriteUntil: () => performance.now() + 3_000 })).to.equal(true)
    expect(await stored()).to.have.length(1)
    await store.close()
  })
})

describe('the clock of MongoDB', () => {
  it('maps a moment of this process to the time of the server', () => {
    const clock = new ServerClock()
    const before = performance.now()
    clock.observe(new Date('2026-11-22T10:00:00.000Z'))
    const at = clock.at(before + 1_000).getTime() - Date.parse('2026-11-22T10:00:01.000Z')
    expect(at).to.be.within(-100, 0)
  })

  it('is long past before the first answer, and for a lease that is not held', () => {
    const clock = new ServerClock()
    expect(clock.at(performance.now()).getUTCFullYear()).to.equal(1970)
    clock.observe(new Date())
    expect(clock.at(-Infinity).getTime()).to.be.below(Date.now())
  })
})
