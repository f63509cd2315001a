import { randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'
import type { MongoSet } from '../../scripts/local-services/mongo.ts'
import { startMongoInMemory } from './mongo-in-memory.ts'

/** A replica set for tests, and a database in it that only the enclosing `describe` uses. */
export type TestMongo = {
  readonly url: string
  /** The settings of a product that uses the database. */
  readonly env: { MONGODB_URL: string; MONGODB_DB: string }
  /** The members, for tests that kill, stop and restart them; each test restores what it changed. Only with `isOwn`. */
  readonly set: MongoSet
  /** Returns the name of a database that does not exist yet. */
  newDatabase(): string
}

type Options = {
  members?: number
  /** Starts a replica set of its own, whose members a test may kill, and stops it after the enclosing `describe`. */
  isOwn?: boolean
}

const START_MS = 60_000

/** The replica set that the test files of this process share. It ends with the process. */
let shared: Promise<MongoSet> | undefined

async function startShared(): Promise<MongoSet> {
  const set = await startMongoInMemory()
  for (const member of set.members) member.unref()
  return set
}

/** Databases of the shared set whose `describe` is over. The collections and indexes of a new one cost MongoDB 0.3 s of CPU. */
const left: string[] = []

/** A database without documents. */
async function takeDatabase({ url }: MongoSet): Promise<string> {
  const database = left.pop()
  if (database === undefined) return newDatabase()
  await using client = new MongoClient(url)
  const collections = await client.db(database).collections()
  const own = collections.filter(({ collectionName }) => !collectionName.startsWith('system.'))
  await Promise.all(own.map((each) => each.deleteMany({})))
  return database
}

const newDatabase = () => `test_${randomUUID().slice(0, 8)}`

/** Starts a replica set before the enclosing `describe`. Never uses the MongoDB of MONGODB_URL, since tests kill members. */
export function useMongo({ members = 1, isOwn = members > 1 }: Options = {}): TestMongo {
  let database = newDatabase()
  let set: MongoSet | undefined
  const running = () => {
    if (set === undefined) throw new Error('the replica set is started by the `before` hook; use it in hooks and tests')
    return set
  }
  before(async function () {
    this.timeout(START_MS)
    set = await (isOwn ? startMongoInMemory(members) : (shared ??= startShared()))
    if (!isOwn) database = await takeDatabase(set)
  })
  after(async () => {
    if (isOwn) await set?.stop()
    else left.push(database)
  })
  return {
    get url() {
      return running().url
    },
    get env() {
      return { MONGODB_URL: running().url, MONGODB_DB: database }
    },
    get set() {
      if (!isOwn) throw new Error('the members are for all test files: useMongo({ isOwn: true }) starts others')
      return running()
    },
    newDatabase,
  }
}
