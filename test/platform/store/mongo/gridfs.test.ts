import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import { describeObjects } from '../../../contract/objects.ts'
import { useMongo } from '../../../support/mongo.ts'

describe('objects in the database', () => {
  const mongo = useMongo()
  describeObjects('in GridFS', async () => {
    const store = await openMongoStore({ url: mongo.url, database: mongo.newDatabase(), collections: [] })
    const objects = store.objects()
    return { ...objects, close: () => store.close() }
  })
})
