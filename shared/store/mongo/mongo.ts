import { MongoClient } from 'mongodb'
import { createHealth } from '../../health.ts'
import { checkSpec, openedAs } from '../document.ts'
import type { CollectionSpec, Store } from '../port.ts'
import { MongoCollection } from './collection.ts'
import { createKeeper } from './connection-monitor.ts'
import { createGate } from './guard.ts'
import { ensureIndexes, requireReplicaSet } from './schema.ts'

export type MongoOptions = {
  url: string
  database: string
  collections: readonly CollectionSpec[]
  /** Told once when something is wrong that waiting does not mend; never with the URL's password. */
  onProblem?: (line: string) => void
  /** Milliseconds since 1970. */
  now?: () => number
}

/**
 * The cluster form's store. A write is acknowledged when a majority of the members has it in its journal.
 *
 * Resolves with a MongoDB that is down as well, within 3 s: indexes are made as soon as it answers, and until then every operation
 * is `unavailable`. Throws when `url` is none.
 */
export async function openMongoStore(options: MongoOptions): Promise<Store> {
  const { collections, now = Date.now, onProblem = () => {} } = options
  for (const spec of collections) checkSpec(spec)
  const client = connect(options.url)
  const db = client.db(options.database)
  const health = createHealth()
  const prepare = async () => {
    await requireReplicaSet(db)
    await ensureIndexes(db, collections)
  }
  const keeper = createKeeper({ db, health, onProblem, prepare })
  const gate = createGate(health, keeper.isReady)
  const opened = new Map(collections.map((spec) => [spec.name, new MongoCollection(spec, { db, gate, now })]))
  await keeper.firstLook
  return {
    collection: ({ name }) => openedAs(name, opened),
    awayMs: health.awayMs,
    async close() {
      await keeper.stop()
      await client.close()
    },
  }
}

/** Reliability.md, T_mongo. Each operation has a shorter deadline of its own (mongo-gate.ts). */
function connect(url: string): MongoClient {
  try {
    return new MongoClient(url, {
      appName: 'agent-engine',
      maxPoolSize: 20,
      maxConnecting: 4,
      maxIdleTimeMS: 60_000,
      connectTimeoutMS: 2_000,
      serverSelectionTimeoutMS: 2_000,
      waitQueueTimeoutMS: 2_000,
      socketTimeoutMS: 5_000,
      heartbeatFrequencyMS: 2_000,
      retryReads: true,
      retryWrites: true,
      readPreference: 'primary',
      writeConcern: { w: 'majority', journal: true },
    })
  } catch {
    // The driver's own words may quote the URL, and with it a password.
    throw new Error('MONGODB_URL is not an address of MongoDB: wanted mongodb://host:27017/?replicaSet=name')
  }
}
