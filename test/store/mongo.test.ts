import { openMongoStore } from '../../shared/store/mongo/mongo.ts'
import { ledgerContract } from '../contract/ledger.ts'
import { storeContract } from '../contract/store.ts'
import { useMongo } from '../support/mongo.ts'

describe('the store in MongoDB', () => {
  const mongo = useMongo()

  describe('as every store', () => {
    const database = mongo.newDatabase()
    storeContract((collections, now) => openMongoStore({ url: mongo.url, database, collections, ...(now && { now }) }))
  })

  describe('the ledger and the memory on it', () => {
    const database = mongo.newDatabase()
    ledgerContract((collections) => openMongoStore({ url: mongo.url, database, collections }))
  })
})
