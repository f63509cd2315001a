import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'

/** Every command that any client sends to a Redis, as text. */
export class RedisRecorder implements AsyncDisposable {
  readonly commands: string[] = []
  readonly #redis: Redis
  #monitor: Redis | undefined

  private constructor(redis: Redis) {
    this.#redis = redis
  }

  static async open(url: string): Promise<RedisRecorder> {
    const recorder = new RedisRecorder(new Redis(url))
    recorder.#monitor = await recorder.#redis.monitor()
    recorder.#monitor.on('monitor', (_time: string, args: string[]) => recorder.commands.push(args.join(' ')))
    return recorder
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#monitor?.disconnect()
    this.#redis.disconnect()
  }
}

/** Every document of every database of a MongoDB, the log of its writes included, as lines of its collection's name and JSON. */
export async function dumpMongo(url: string): Promise<string> {
  const client = await MongoClient.connect(url)
  const lines: string[] = []
  try {
    const { databases } = await client.db('admin').admin().listDatabases()
    for (const { name } of databases) {
      const collections = await client.db(name).listCollections({ type: 'collection' }, { nameOnly: true }).toArray()
      for (const collection of collections) {
        for await (const doc of client.db(name).collection(collection.name).find()) {
          lines.push(`${name}.${collection.name} ${JSON.stringify(doc)}`)
        }
      }
    }
  } finally {
    await client.close()
  }
  return lines.join('\n')
}

/** The texts that occur in any file below a folder, byte by byte. Compressed files may hide some: dump the database too. */
export async function findInFiles(dir: string, texts: readonly string[]): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => [])
  const found: string[] = []
  for (const entry of entries.filter((each) => each.isFile())) {
    const bytes = await readFile(join(entry.parentPath, entry.name)).catch(() => Buffer.alloc(0))
    found.push(...texts.filter((text) => bytes.includes(text)).map((text) => `${entry.name} contains ${text}`))
  }
  return found
}

/** The texts that occur in a text. */
export const findIn = (what: string, text: string, texts: readonly string[]): string[] =>
  texts.filter((each) => text.includes(each)).map((each) => `${what} contains ${each}`)
