import type { Db, IndexDescription } from 'mongodb'
import { indexesOf } from '../document.ts'
import type { CollectionSpec } from '../port.ts'
import { StoreProblem } from './connection-monitor.ts'

/** An index over many documents takes its time to be made, but nobody waits for it. */
const BUILD_MS = 600_000

/** Makes what is missing. A member that is down does not keep the others from it. */
export async function ensureIndexes(db: Db, collections: readonly CollectionSpec[]): Promise<void> {
  for (const spec of collections)
    await db
      .collection(spec.name)
      .createIndexes(descriptionsOf(spec), { commitQuorum: 'majority', maxTimeMS: BUILD_MS })
}

function descriptionsOf(spec: CollectionSpec): IndexDescription[] {
  const descriptions: IndexDescription[] = indexesOf(spec).map(({ name, fields, isUnique }) => ({
    name,
    unique: isUnique,
    key: new Map([['tenant', 1 as const], ...fields.map((field) => [field, 1 as const] as const)]),
  }))
  if (spec.ttlSecs !== undefined)
    descriptions.push({ name: 'by_expiry', key: new Map([['expires_at', 1 as const]]), expireAfterSeconds: 0 })
  return descriptions
}

/** A single server has neither majority writes nor retries. */
export async function requireReplicaSet(db: Db): Promise<void> {
  const hello = await db.command({ hello: 1 })
  if ('setName' in hello || hello['msg'] === 'isdbgrid') return
  throw new StoreProblem('the MongoDB of MONGODB_URL is no replica set: start it with --replSet and run rs.initiate()')
}
