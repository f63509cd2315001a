import { type Db, type IndexDescription, MongoClient } from 'mongodb'
import { createHealth } from '../../../kernel/health.ts'
import type { Objects } from '../../objects/port.ts'
import { assertValidSpec, canExpire, indexesOf, requireCollection } from '../document.ts'
import type { CollectionSpec, Store } from '../port.ts'
import { MongoCollection } from './collection.ts'
import { ConnectionMonitor, StoreProblem } from './connection-monitor.ts'
import { openGridFs } from './gridfs.ts'
import { createOperationGuard } from './guard.ts'
import { ServerClock } from './server-clock.ts'

export type MongoOptions = {
  url: string
  database: string
  collections: readonly CollectionSpec[]
  /** Called once for each problem that does not end by waiting. The text never holds the URL's password. */
  onProblem?: (problem: string) => void
  /** Milliseconds since 1970. */
  now?: () => number
}

/**
 * Opens the store of the cluster form. A write is acknowledged when a majority of the members has it in its journal, and one with
 * the durability `weak` when the primary has it.
 *
 * Resolves within 3 s even when MongoDB does not answer: the indexes are created as soon as it does, and until then every
 * operation throws `unavailable`. Throws when `url` is not an address of MongoDB.
 */
export async function openMongoStore(options: MongoOptions): Promise<Store & { objects(): Objects }> {
  const { collections, now = Date.now, onProblem = () => {} } = options
  for (const spec of collections) assertValidSpec(spec)
  const client = createClient(options.url)
  const db = client.db(options.database)
  const health = createHealth()
  const clock = new ServerClock()
  const prepare = async () => {
    await requireReplicaSet(db)
    await ensureIndexes(db, collections)
  }
  const monitor = new ConnectionMonitor({ db, health, clock, onProblem, prepare })
  const guard = createOperationGuard(health, () => monitor.isReady)
  const opened = new Map(collections.map((spec) => [spec.name, new MongoCollection(spec, { db, guard, now, clock })]))
  await monitor.start()
  return {
    collection: ({ name }) => requireCollection(name, opened),
    objects: () => openGridFs(db),
    awayMs: health.awayMs,
    async close() {
      await monitor.stop()
      await client.close()
    },
  }
}

const CONNECT_MS = 2_000
const HANGING_MS = 5_000

/** The timeouts keep the driver's own waits below the 3 s that the port promises; guard.ts sets the deadline of an operation. */
function createClient(url: string): MongoClient {
  try {
    return new MongoClient(url, {
      appName: 'agent-engine',
      maxPoolSize: 20,
      maxConnecting: 4,
      maxIdleTimeMS: 60_000,
      connectTimeoutMS: CONNECT_MS,
      serverSelectionTimeoutMS: CONNECT_MS,
      waitQueueTimeoutMS: CONNECT_MS,
      socketTimeoutMS: HANGING_MS,
      heartbeatFrequencyMS: 2_000,
      retryReads: true,
      retryWrites: true,
      readPreference: 'primary',
      writeConcern: { w: 'majority', journal: true },
    })
  } catch {
    // The driver's message may quote the URL, which may hold a password.
    throw new Error('MONGODB_URL is not an address of MongoDB; expected mongodb://host:27017/?replicaSet=name')
  }
}

/** Building an index over many documents takes long; no request waits for it. */
const BUILD_TIMEOUT_MS = 600_000

/** Creates the missing indexes. A majority of the members is enough, so that one that is down does not block the others. */
async function ensureIndexes(db: Db, collections: readonly CollectionSpec[]): Promise<void> {
  for (const spec of collections)
    await db
      .collection(spec.name)
      .createIndexes(toDescriptions(spec), { commitQuorum: 'majority', maxTimeMS: BUILD_TIMEOUT_MS })
}

function toDescriptions(spec: CollectionSpec): IndexDescription[] {
  const descriptions: IndexDescription[] = indexesOf(spec).map(({ name, fields, isUnique }) => ({
    name,
    unique: isUnique,
    key: new Map([['tenant', 1 as const], ...fields.map((field) => [field, 1 as const] as const)]),
  }))
  if (canExpire(spec))
    descriptions.push({ name: 'by_expiry', key: new Map([['expires_at', 1 as const]]), expireAfterSeconds: 0 })
  return descriptions
}

/** Throws for a single server: it has neither majority writes nor retries. */
async function requireReplicaSet(db: Db): Promise<void> {
  const hello = await db.command({ hello: 1 })
  if ('setName' in hello || hello['msg'] === 'isdbgrid') return
  throw new StoreProblem(
    'the MongoDB of MONGODB_URL is not a replica set: start it with --replSet and run rs.initiate()',
  )
}
