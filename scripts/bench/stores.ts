import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import { openMongoStore } from '../../shared/platform/store/mongo/mongo.ts'
import type { Store } from '../../shared/platform/store/port.ts'
import { openSqliteStore } from '../../shared/platform/store/sqlite/sqlite.ts'
import type { Bench } from './bench.ts'
import type { Measured } from './figure.ts'

/** Two empty stores, and how many documents a long list shall have. */
export type BenchStore = { name: string; store: Store; other: Store; long: number }

const SQLITE_LONG = 100_000
/** As many as fit in the time of a figure. */
const MONGO_LONG = 10_000
const QUICK_LONG = 20_000
const QUICK_MONGO_LONG = 5_000

/** Measures in SQLite, and in the MongoDB of MONGODB_URL if set. The value is the larger of the two. */
export async function measureInStores(
  bench: Bench,
  compare: (store: BenchStore, bench: Bench) => Promise<Measured>,
): Promise<Measured> {
  const found = [await inSqlite((store) => compare(store, bench), bench)]
  const url = process.env['MONGODB_URL']
  if (url) found.push(await inMongo(url, (store) => compare(store, bench), bench))
  return { value: Math.max(...found.map(({ value }) => value)), detail: found.map(({ detail }) => detail).join('; ') }
}

type Use = (store: BenchStore) => Promise<Measured>

async function inSqlite(use: Use, bench: Bench): Promise<Measured> {
  const dir = await mkdtemp(join(tmpdir(), 'agent-engine-bench-'))
  const open = (file: string) => openSqliteStore({ file: join(dir, file), collections: COLLECTIONS })
  const [store, other] = [await open('bench.db'), await open('other.db')]
  try {
    return await use({ name: 'SQLite', store, other, long: bench.pick(SQLITE_LONG, QUICK_LONG) })
  } finally {
    await Promise.all([store.close(), other.close()])
    await rm(dir, { recursive: true })
  }
}

async function inMongo(url: string, use: Use, bench: Bench): Promise<Measured> {
  const names = [newName(), newName()] as const
  const open = (database: string) => openMongoStore({ url, database, collections: COLLECTIONS })
  const [store, other] = [await open(names[0]), await open(names[1])]
  try {
    return await use({ name: 'MongoDB', store, other, long: bench.pick(MONGO_LONG, QUICK_MONGO_LONG) })
  } finally {
    await Promise.all([store.close(), other.close()])
    for (const name of names) await dropDatabase(url, name)
  }
}

const newName = (): string => `bench_${randomUUID().slice(0, 8)}`

async function dropDatabase(url: string, database: string): Promise<void> {
  const client = new MongoClient(url)
  try {
    await client.db(database).dropDatabase()
  } finally {
    await client.close()
  }
}
