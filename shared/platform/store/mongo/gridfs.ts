import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Db, type Document, GridFSBucket, MongoServerError } from 'mongodb'
import { type ListedObject, type Objects, orAway } from '../../objects/port.ts'

/** MongoDB's own name for the two collections: `objects.files` and `objects.chunks`. */
const BUCKET = 'objects'
const DUPLICATE_KEY = 11_000

type Entry = { _id: string; uploadDate: Date }

/**
 * Objects in the database, by GridFS. An object never changes, so tags are not supported as a condition. If a process dies during a write, chunks
 * without an entry remain: `find` does not find them, `list` shows their key as new, and `delete` deletes them.
 */
export function openGridFs(db: Db): Objects {
  const bucket = new GridFSBucket(db, { bucketName: BUCKET })
  const files = db.collection<Entry>(`${BUCKET}.files`)
  const has = async (key: string) => (await files.findOne({ _id: key }, { projection: { _id: 1 } })) !== null
  // The driver's types allow only ObjectId as an id; the server accepts any.
  const idOf = (key: string) => key as never
  const remove = (key: string) => bucket.delete(idOf(key)).catch(ignoreMissing)
  return {
    has: (key) => orAway(() => has(key)),
    find: (key, range) =>
      orAway(async () => {
        if (!(await has(key))) return undefined
        return {
          tag: key,
          body: bucket.openDownloadStream(idOf(key), range && { start: range.from, end: range.to + 1 }),
        }
      }),
    write: (key, content, when) =>
      orAway(async () => {
        if (when === undefined) await remove(key)
        const source = content.open()
        const upload = bucket.openUploadStreamWithId(idOf(key), key)
        try {
          await pipeline(source instanceof Uint8Array ? Readable.from([source]) : source, upload)
          return key
        } catch (cause) {
          if (cause instanceof MongoServerError && cause.code === DUPLICATE_KEY) return undefined
          await upload.abort().catch(() => {})
          throw cause
        }
      }),
    delete: (key) => orAway(() => remove(key)),
    list: (prefix) => list(files.aggregate<Listed>(keysFrom(prefix))),
    close: async () => {},
  }
}

type Listed = { _id: string; uploadDate: Date | null }

/** The keys of the entries and of the chunks, each once and in their order. The chunks are not read, only their index. */
function keysFrom(prefix: string): Document[] {
  const range = { $gte: prefix, $lt: `${prefix}\uffff` }
  const ofChunks = [{ $match: { files_id: range } }, { $group: { _id: '$files_id' } }]
  return [
    { $match: { _id: range } },
    { $unionWith: { coll: `${BUCKET}.chunks`, pipeline: ofChunks } },
    { $group: { _id: '$_id', uploadDate: { $max: '$uploadDate' } } },
    { $sort: { _id: 1 } },
  ]
}

async function* list(found: AsyncIterable<Listed>): AsyncGenerator<ListedObject> {
  for await (const { _id, uploadDate } of found)
    yield { key: _id, ageMs: uploadDate === null ? 0 : Date.now() - uploadDate.getTime() }
}

function ignoreMissing(cause: Error): void {
  if (!cause.message.startsWith('File not found')) throw cause
}
