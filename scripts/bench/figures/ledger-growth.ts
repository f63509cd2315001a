import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { COLLECTIONS } from '../../../shared/store/collections.ts'
import { createLedger, LEDGER } from '../../../shared/store/ledger.ts'
import { openMongoStore } from '../../../shared/store/mongo/mongo.ts'
import type { Store } from '../../../shared/store/port.ts'
import { openSqliteStore } from '../../../shared/store/sqlite/sqlite.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/tenant.ts'
import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'
import { median } from '../statistics.ts'

const SHORT = 100
const READ = 10
const AT_ONCE = 100
const WARM_UP = 200
/** As many as fit in the time of a figure. */
const MONGO_LONG = 20_000

/** Whether reading a customer's last entries takes longer with a long ledger: in SQLite, and in the MongoDB of MONGODB_URL if set. */
export const ledgerGrowth: Figure = {
  name: 'ledger-growth',
  title: `last ${READ} ledger entries of 100,000 to those of ${SHORT}`,
  goal: { atMost: 1.3 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  const rows = [await inSqlite(bench)]
  const url = process.env['MONGODB_URL']
  if (url) rows.push(await inMongo(url, bench))
  return { value: Math.max(...rows.map(({ ratio }) => ratio)), detail: rows.map(({ detail }) => detail).join('; ') }
}

async function inSqlite(bench: Bench) {
  const dir = await mkdtemp(join(tmpdir(), 'agent-engine-bench-'))
  const store = await openSqliteStore({ file: join(dir, 'ledger.db'), collections: COLLECTIONS })
  try {
    return await compare({ name: 'SQLite', store, long: bench.pick(100_000, 20_000) }, bench)
  } finally {
    await store.close()
    await rm(dir, { recursive: true })
  }
}

async function inMongo(url: string, bench: Bench) {
  const database = `bench_${randomUUID().slice(0, 8)}`
  const store = await openMongoStore({ url, database, collections: COLLECTIONS })
  try {
    return await compare({ name: 'MongoDB', store, long: MONGO_LONG }, bench)
  } finally {
    await store.close()
    await dropDatabase(url, database)
  }
}

async function dropDatabase(url: string, database: string): Promise<void> {
  const client = new MongoClient(url)
  try {
    await client.db(database).dropDatabase()
  } finally {
    await client.close()
  }
}

type Compared = { name: string; store: Store; long: number }

/** Reads both ledgers alternately, so that other work on the machine affects both. */
async function compare({ name, store, long }: Compared, bench: Bench): Promise<{ ratio: number; detail: string }> {
  await fill(store, 'long', long)
  await fill(store, 'short', SHORT)
  const ledger = createLedger(store)
  const times: Record<'short' | 'long', number[]> = { short: [], long: [] }
  for (let round = -WARM_UP; round < bench.pick(2000, 1000); round += 1) {
    for (const customer of ['short', 'long'] as const) {
      const start = performance.now()
      await ledger.last(TENANT, customer, READ)
      if (round >= 0) times[customer].push(performance.now() - start)
    }
    bench.signal.throwIfAborted()
  }
  const [short, longer] = [median(times.short), median(times.long)]
  const detail = `${name} ${(1000 * short).toFixed(0)} us of ${SHORT}, ${(1000 * longer).toFixed(0)} us of ${long}`
  return { ratio: longer / short, detail }
}

async function fill(store: Store, customer_id: string, count: number): Promise<void> {
  const entries = store.collection(LEDGER)
  const input = 'a question of some length, as customers ask them '.repeat(4)
  const put = (seq: number) =>
    entries.insert(TENANT, {
      customer_id,
      seq,
      run_id: `run_${seq}`,
      input,
      output: input,
      timestamp: '2026-11-22T10:00:00.000Z',
    })
  for (let seq = 1; seq <= count; seq += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - seq + 1) }, (_, i) => put(seq + i)))
  }
}
