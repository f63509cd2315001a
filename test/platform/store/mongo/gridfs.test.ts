import { expect } from 'chai'
import { GridFSBucket, MongoClient } from 'mongodb'
import { contentOf } from '../../../../shared/platform/objects/content.ts'
import { openMongoStore } from '../../../../shared/platform/store/mongo/mongo.ts'
import { describeObjects } from '../../../contract/objects.ts'
import { useMongo } from '../../../support/mongo.ts'
import { listAll } from '../../../support/s3.ts'

describe('objects in the database', () => {
  const mongo = useMongo()
  const open = (database: string) => openMongoStore({ url: mongo.url, database, collections: [] })
  describeObjects('in GridFS', async () => {
    const store = await open(mongo.newDatabase())
    return { ...store.objects(), close: () => store.close() }
  })

  it('of which a process has written a part and died are listed and deleted, and never found', async () => {
    const database = mongo.newDatabase()
    await using store = { opened: await open(database), [Symbol.asyncDispose]: () => store.opened.close() }
    await using client = new MongoClient(mongo.url)
    const objects = store.opened.objects()
    for (const key of ['u/1', 'u/3', 'v/1']) await objects.write(key, contentOf(key))
    const upload = new GridFSBucket(client.db(database), { bucketName: 'objects', chunkSizeBytes: 4 })
    const dying = upload.openUploadStreamWithId('u/2' as never, 'u/2')
    await new Promise((resolve) => dying.write(Buffer.from('two chunks and a bit'), resolve)) // And no end.

    expect((await listAll(objects, 'u/')).map(({ key }) => key)).to.deep.equal(['u/1', 'u/2', 'u/3'])
    expect(await objects.find('u/2')).to.equal(undefined)
    for (const { key } of await listAll(objects, 'u/')) await objects.delete(key)
    const chunks = client.db(database).collection('objects.chunks')
    expect(await chunks.distinct('files_id')).to.deep.equal(['v/1'])
  })
})
