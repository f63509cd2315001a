import { MongoClient, MongoServerError } from 'mongodb'

export type MongoFacts = {
  version: string
  /** Absent when it is not a replica set, which the product requires. */
  setName?: string
}

const ANSWER_WITHIN_MS = 3000

/** Reads version and replica set of the MongoDB at `url`. Throws when it does not answer in time; the message does not contain the password. */
export async function checkMongo(url: string, withinMs = ANSWER_WITHIN_MS): Promise<MongoFacts> {
  const client = open(url, withinMs)
  try {
    const [{ version }, { setName }] = await Promise.all([
      client.db('admin').command({ buildInfo: 1 }),
      client.db('admin').command({ hello: 1 }),
    ])
    return { version: String(version), ...(typeof setName === 'string' && { setName }) }
  } catch (cause) {
    const reason = cause instanceof MongoServerError ? (cause.codeName ?? 'refused') : 'no answer'
    throw new Error(`no MongoDB answers at ${client.options.hosts.map(String).join(', ')} (${reason})`, { cause })
  } finally {
    await client.close()
  }
}

function open(url: string, withinMs: number): MongoClient {
  try {
    return new MongoClient(url, {
      serverSelectionTimeoutMS: withinMs,
      connectTimeoutMS: withinMs,
      socketTimeoutMS: withinMs,
    })
  } catch {
    throw new Error('MONGODB_URL is not an address of MongoDB: wanted mongodb://host:27017/?replicaSet=name')
  }
}
