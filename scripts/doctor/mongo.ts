import { type Db, type Document, MongoClient } from 'mongodb'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import { canExpire, indexesOf } from '../../shared/platform/store/document.ts'
import { type Check, type Finding, unreachable } from './finding.ts'

const WITHIN_MS = 5_000
/** Holds nothing: what is written here is deleted at once. */
const SCRATCH = 'doctor'

/** The replica set, writes to a majority of it, and the indexes of all collections that exist. */
export const checkMongo: Check = async ({ config: { mongodbUrl, mongodbDb } }) => {
  if (mongodbUrl === undefined) return NO_STORE
  const limits = { serverSelectionTimeoutMS: WITHIN_MS, connectTimeoutMS: WITHIN_MS, socketTimeoutMS: 2 * WITHIN_MS }
  const client = new MongoClient(mongodbUrl, limits)
  try {
    const db = client.db(mongodbDb)
    const hello = await db.command({ hello: 1 })
    if (!('setName' in hello) && hello['msg'] !== 'isdbgrid') return NO_SET
    return [...(await findAbsentMembers(client)), ...(await tryWrite(db)), ...(await findMissingIndexes(db))]
  } catch (cause) {
    return unreachable('the MongoDB of MONGODB_URL', cause)
  } finally {
    await client.close()
  }
}

const NO_STORE: Finding[] = [
  {
    problem: 'MONGODB_URL is not set, so flows, plans and histories are off',
    cure: 'set MONGODB_URL to a replica set',
  },
]
const NO_SET: Finding[] = [
  {
    problem: 'the MongoDB of MONGODB_URL is not a replica set, so it has no majority writes',
    cure: 'start mongod with --replSet and run rs.initiate()',
  },
]

/** A user without the right to see the members gets no finding: `tryWrite` shows whether a majority is there. */
async function findAbsentMembers(client: MongoClient): Promise<Finding[]> {
  const status = await client
    .db('admin')
    .command({ replSetGetStatus: 1 })
    .catch((): Document => ({}))
  const members = (status['members'] ?? []) as { name: string; health: number; stateStr: string }[]
  return members
    .filter(({ health }) => health !== 1)
    .map(({ name, stateStr }) => ({
      problem: `the member ${name} of the replica set is ${stateStr.toLowerCase()}: one more failure may stop all writes`,
      cure: 'start it again, or remove it from the set',
    }))
}

/** Every write of the product waits for the journal of a majority. */
async function tryWrite(db: Db): Promise<Finding[]> {
  const writeConcern = { w: 'majority', journal: true, wtimeoutMS: WITHIN_MS } as const
  const scratch = db.collection(SCRATCH)
  try {
    const { insertedId } = await scratch.insertOne({ at: new Date() }, { writeConcern })
    await scratch.deleteOne({ _id: insertedId })
    return []
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return [
      {
        problem: `MongoDB did not acknowledge a write by a majority within ${WITHIN_MS / 1_000} s: ${reason}`,
        cure: 'start the absent members, and give the user of MONGODB_URL the role readWrite',
      },
    ]
  }
}

async function findMissingIndexes(db: Db): Promise<Finding[]> {
  const existing = new Set((await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name))
  const findings = await Promise.all(
    COLLECTIONS.filter(({ name }) => existing.has(name)).map(async (spec): Promise<Finding[]> => {
      const found = new Set((await db.collection(spec.name).indexes()).map(({ name }) => name))
      const wanted = [...indexesOf(spec).map(({ name }) => name), ...(canExpire(spec) ? ['by_expiry'] : [])]
      const missing = wanted.filter((name) => !found.has(name))
      if (missing.length === 0) return []
      const problem = `the collection ${spec.name} has no index ${missing.join(', ')}: it may hold duplicates, or be slow`
      return [{ problem, cure: 'restart one gateway, which creates missing indexes, and read its log' }]
    }),
  )
  return findings.flat()
}
