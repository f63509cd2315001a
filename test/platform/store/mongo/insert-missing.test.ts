import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import type { CollectionSpec } from '../../../../shared/platform/store/port.ts'
import { useOpened } from '../../../support/fixture.ts'
import { useMongo } from '../../../support/mongo.ts'

const ENTRIES: CollectionSpec = { name: 'entries', key: ['id'], hasBody: true }
/** Six of them are above the 16 MiB that one command takes, in characters of three bytes. */
const LONG = '€'.repeat(1_500_000)

type Metrics = { commands: { insert: { total: number } } }

describe('documents that go to MongoDB together', () => {
  const mongo = useMongo()
  const store = useOpened(() =>
    openMongoStore({ url: mongo.url, database: mongo.newDatabase(), collections: [ENTRIES] }),
  )

  it('may be longer than one command takes: all are stored, and those that were there are told', async () => {
    const entries = store.collection(ENTRIES)
    const docs = Array.from({ length: 6 }, (_, n) => ({
      tenant: DEFAULT_TENANT,
      doc: { id: `e${n}`, text: n % 2 === 0 ? LONG : '' },
      ...(n % 2 === 1 && { body: LONG }),
    }))
    await entries.insert(DEFAULT_TENANT, { id: 'e4', text: 'earlier' })
    expect(await entries.insertMissing(docs)).to.deep.equal([docs[4]])
    const texts = await Promise.all(docs.map(({ doc }) => entries.get(DEFAULT_TENANT, { id: doc.id })))
    expect(texts.map((found) => String(found?.doc['text']).length + (found?.body?.length ?? 0))).to.deep.equal([
      ...Array.from({ length: 4 }, () => LONG.length),
      'earlier'.length,
      LONG.length,
    ])
  })

  it('go with one command when others are under way, each with its own result: a refused one fails for its caller alone', async () => {
    const [database, client] = [mongo.newDatabase(), await new MongoClient(mongo.url).connect()]
    const own = await openMongoStore({ url: mongo.url, database, collections: [ENTRIES] })
    await client.db(database).command({ collMod: 'entries', validator: { id: { $ne: 'refused' } } })
    const inserts = async () => ((await client.db().admin().serverStatus())['metrics'] as Metrics).commands.insert.total
    const entries = own.collection(ENTRIES)
    const before = await inserts()
    const of = (...ids: string[]) => entries.insertMissing(ids.map((id) => ({ tenant: DEFAULT_TENANT, doc: { id } })))
    const all = ['first', ...Array.from({ length: 20 }, (_, n) => `n${n}`)].map((id) => of(id))
    const outcomes = await Promise.allSettled([...all, of('refused'), of('n3', 'behind')])
    expect(outcomes.flatMap(({ status }, i) => (status === 'rejected' ? [i] : []))).to.deep.equal([all.length])
    const [, last] = outcomes.slice(-2)
    expect(last?.status === 'fulfilled' && last.value.map(({ doc }) => doc['id'])).to.deep.equal(['n3'])
    expect(await entries.get(DEFAULT_TENANT, { id: 'behind' })).to.not.equal(undefined)
    expect((await inserts()) - before, 'the first one, and those that came meanwhile').to.equal(2)
    await Promise.all([own.close(), client.close()])
  })
})
