import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import type { CollectionSpec, Store } from '../../../../shared/platform/store/port.ts'
import { useMongo } from '../../../support/mongo.ts'

const ENTRIES: CollectionSpec = { name: 'entries', key: ['id'], hasBody: true }
/** Six of them are above the 16 MiB that one command takes, in characters of three bytes. */
const LONG = '€'.repeat(1_500_000)

describe('documents that go to MongoDB together', () => {
  const mongo = useMongo()
  let store: Store
  before(async () => {
    store = await openMongoStore({ url: mongo.url, database: mongo.newDatabase(), collections: [ENTRIES] })
  })
  after(() => store.close())

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
})
