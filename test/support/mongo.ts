import { randomUUID } from 'node:crypto'
import { type MongoSet, startMongoSet } from '../../scripts/local-services/mongo.ts'

/** A replica set that only this test file uses. */
export type TestMongo = {
  readonly url: string
  /** The members, for tests that kill, stop and restart them; each test restores what it changed. */
  readonly set: MongoSet
  /** Returns the name of a database that does not exist yet. */
  newDatabase(): string
}

const START_MS = 60_000

/** Starts a replica set before the enclosing `describe` and stops it afterwards. Never uses the MongoDB of MONGODB_URL, since tests kill members. */
export function useMongo({ members = 1 }: { members?: number } = {}): TestMongo {
  let set: MongoSet | undefined
  const running = () => {
    if (set === undefined) throw new Error('the replica set is started by the `before` hook; use it in hooks and tests')
    return set
  }
  before(async function () {
    this.timeout(START_MS)
    set = await startMongoSet(members)
  })
  after(async () => set?.stop())
  return {
    get url() {
      return running().url
    },
    get set() {
      return running()
    },
    newDatabase: () => `test_${randomUUID().slice(0, 8)}`,
  }
}
