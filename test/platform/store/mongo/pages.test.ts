import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import type { DispatchQuery } from '../../../../shared/work/flows/port.ts'
import {
  DISPATCH_ANSWERS,
  DISPATCH_INPUTS,
  DISPATCH_OUTPUTS,
  DISPATCHES,
  toDoc,
} from '../../../../shared/work/flows/store/dispatch-documents.ts'
import { StoredDispatches } from '../../../../shared/work/flows/store/dispatches.ts'
import { newDispatch, START } from '../../../contract/dispatch-setup.ts'
import { useMongo } from '../../../support/mongo.ts'

const OF_DISPATCHES = [DISPATCHES, DISPATCH_INPUTS, DISPATCH_OUTPUTS, DISPATCH_ANSWERS]
const COUNT = 3_000
const LIMIT = 20
/** One in this many records is of the rare flow, one in this many has the rare status. */
const RARE = 100

describe('a page in MongoDB', () => {
  const mongo = useMongo()

  it('reads no more index entries than it returns, for each filter and anywhere in the list', async () => {
    const database = mongo.newDatabase()
    const store = await openMongoStore({ url: mongo.url, database, collections: OF_DISPATCHES })
    const client = new MongoClient(mongo.url)
    try {
      const records = store.collection(DISPATCHES)
      const put = (i: number) => {
        const flow = { name: i % RARE === 7 ? 'rare' : 'usual', uid: 'flow_1', version: 1 }
        const isRare = i % RARE === 9 || i % (3 * RARE) === 7
        return records.insert(TENANT, toDoc(newDispatch(START + i, { flow, status: isRare ? 'error' : 'ok' })))
      }
      for (let i = 0; i < COUNT; i += 100) await Promise.all(Array.from({ length: 100 }, (_, j) => put(i + j)))
      const db = client.db(database)
      await db.command({ profile: 2 })
      const dispatches = new StoredDispatches(store)
      const middle = START + COUNT / 2
      const queries: Partial<DispatchQuery>[] = [
        {},
        { flow: 'usual' },
        { flow: 'rare' },
        { flow: 'rare', untilMs: middle },
        { status: 'error', sinceMs: START + 10 },
        { flow: 'rare', status: 'error' },
        { flow: 'usual', status: 'ok', untilMs: middle },
        { flow: 'unknown' },
      ]
      for (const query of queries) {
        const first = await dispatches.list(TENANT, { kind: 'run', limit: LIMIT, ...query })
        const cursor = first.next_cursor ?? undefined
        await dispatches.list(TENANT, { kind: 'run', limit: LIMIT, ...query, cursor })
      }
      await db.command({ profile: 0 })
      const filter = { op: 'query', ns: `${database}.${DISPATCHES.name}` }
      const profiles = await db.collection('system.profile').find(filter).toArray()
      expect(profiles).to.have.length(2 * queries.length)
      for (const { keysExamined, docsExamined, nreturned } of profiles) {
        const reads = { keysExamined, docsExamined, nreturned }
        expect(reads).to.satisfy(() => keysExamined <= nreturned + 3 && docsExamined <= nreturned + 3)
      }
      // MongoDB does not try several indexes against each other.
      expect(profiles[0]).to.not.include({ fromMultiPlanner: true })
    } finally {
      await client.close()
      await store.close()
    }
  })
})
