import type { Db, IndexDescription } from 'mongodb'
import { canExpire, indexesOf } from '../document.ts'
import type { CollectionSpec } from '../port.ts'
import { StoreProblem } from './connection-monitor.ts'

/** Building an index over many documents takes long; no request waits for it. */
const BUILD_TIMEOUT_MS = 600_000

/** Creates the missing indexes. A majority of the members is enough, so that one that is down does not block the others. */
export async function ensureIndexes(db: Db, collections: readonly CollectionSpec[]): Promise<void> {
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
export async function requireReplicaSet(db: Db): Promise<void> {
  const hello = await db.command({ hello: 1 })
  if ('setName' in hello || hello['msg'] === 'isdbgrid') return
  throw new StoreProblem(
    'the MongoDB of MONGODB_URL is not a replica set: start it with --replSet and run rs.initiate()',
  )
}
