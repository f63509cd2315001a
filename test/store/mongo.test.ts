import { openMongoStore } from '../../shared/store/mongo/mongo.ts'
import { ledgerContract } from '../contract/ledger.ts'
import { storeContract } from '../contract/store.ts'
import { useMongo } from '../support/mongo.ts'

describe('the store in MongoDB', () => {
  const mongo = useMongo()

  describe('passes the contract of a store', () => {
    const database = mongo.newDatabase()
    storeContract((collections, now) => openMongoStore({ url: mongo.url, database, collections, ...(now && { now }) }))
  })

  describe('holds the ledger and the memory entries', () => {
    const database = mongo.newDatabase()
    ledgerContract((collections) => openMongoStore({ url: mongo.url, database, collections }))
  })
})
