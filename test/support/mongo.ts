import { randomUUID } from 'node:crypto'
import { type MongoSet, startMongoSet } from '../../scripts/local-services/mongo.ts'

/** A replica set of this test file's own. */
export type TestMongo = {
  readonly url: string
  /** To kill, stop and restart: what a test does to it, it undoes. */
  readonly set: MongoSet
  /** A database's name that nobody has used. */
  newDatabase(): string
}

const START_MS = 60_000

/** Registers the hooks of the enclosing `describe`. Never touches the MongoDB of MONGODB_URL: a test needs one that it may kill. */
export function useMongo({ members = 1 }: { members?: number } = {}): TestMongo {
  let set: MongoSet | undefined
  const running = () => {
    if (set === undefined) throw new Error('MongoDB is there from the `before` hook on')
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
