import { setTimeout as sleep } from 'node:timers/promises'
import { type Document, MongoClient } from 'mongodb'
import { checkMongo } from './mongo-facts.ts'
import { type MongoMember, startMember } from './mongo-member.ts'
import { ensureMongod, requireMongod } from './mongo-server.ts'

/**
 * The MongoDB of a cluster (D1.2): the replica set at `url` if it is given and answers, else a private one of one member, fetched
 * where that can be done. `set` is there when it is ours to stop.
 */
export async function openMongo(
  url: string | undefined,
  say: (line: string) => void,
): Promise<{ url: string; set?: MongoSet }> {
  if (url) {
    const { version, setName } = await checkMongo(url)
    if (setName === undefined) throw new Error('the MongoDB of MONGODB_URL is no replica set: start it with --replSet')
    say(`Using the MongoDB ${version} of MONGODB_URL (replica set ${setName}).`)
    return { url }
  }
  const { version } = await ensureMongod(say)
  const set = await startMongoSet()
  say(`Started MongoDB ${version} at ${set.url} (pid ${set.members.map(({ pid }) => pid).join(', ')}).`)
  return { url: set.url, set }
}

const SET_NAME = 'agent-engine'
/** A set on one machine notices sooner than in ten seconds that its primary is gone. */
const ELECTION_MS = 2_000
const HEARTBEAT_MS = 500

/** Starts a private replica set and waits until it takes writes and, of several members, each has joined. */
export async function startMongoSet(count = 1): Promise<MongoSet> {
  const { command } = await requireMongod()
  const starts = await Promise.allSettled(Array.from({ length: count }, () => startMember(command, SET_NAME)))
  const members = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
  const set = new MongoSet(members)
  try {
    for (const start of starts) if (start.status === 'rejected') throw start.reason
    await set.initiate()
    return set
  } catch (cause) {
    await set.stop()
    throw cause
  }
}

const READY_WITHIN_MS = 30_000
const ASK_EVERY_MS = 20

/** A replica set of our own. */
export class MongoSet implements AsyncDisposable {
  readonly members: readonly MongoMember[]
  readonly url: string

  constructor(members: readonly MongoMember[]) {
    this.members = members
    this.url = `mongodb://${members.map(({ host }) => host).join(',')}/?replicaSet=${SET_NAME}`
  }

  async initiate(): Promise<void> {
    const members = this.members.map(({ host }, _id) => ({ _id, host }))
    const settings = { electionTimeoutMillis: ELECTION_MS, heartbeatIntervalMillis: HEARTBEAT_MS }
    const [first] = this.members
    if (first) await ask(first, { replSetInitiate: { _id: SET_NAME, members, settings } })
    await this.settled()
  }

  /** The member that takes writes now; waits for an election where there is none. */
  async primary(): Promise<MongoMember> {
    return until(async () => {
      for (const member of this.members) {
        const isPrimary = member.isRunning && (await ask(member, { hello: 1 }))['isWritablePrimary'] === true
        if (isPrimary) return member
      }
      return undefined
    }, 'no primary was elected')
  }

  /** Resolves when there is a primary, and all members that run are up to date enough to be elected. */
  async settled(): Promise<void> {
    const primary = await this.primary()
    await until(async () => {
      const { members = [] } = (await ask(primary, { replSetGetStatus: 1 })) as { members?: { stateStr: string }[] }
      const up = members.filter(({ stateStr }) => stateStr === 'PRIMARY' || stateStr === 'SECONDARY').length
      return up >= this.members.filter(({ isRunning }) => isRunning).length || undefined
    }, 'not every member joined')
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

/** One command to one member, whatever its state. */
async function ask({ host }: MongoMember, command: Document): Promise<Document> {
  const limits = { serverSelectionTimeoutMS: 2000, socketTimeoutMS: 5000 }
  const client = new MongoClient(`mongodb://${host}/?directConnection=true`, limits)
  try {
    return await client.db('admin').command(command)
  } finally {
    await client.close()
  }
}

async function until<T>(look: () => Promise<T | undefined>, failure: string): Promise<T> {
  for (const deadline = performance.now() + READY_WITHIN_MS; performance.now() < deadline; await sleep(ASK_EVERY_MS)) {
    const found = await look().catch(() => undefined)
    if (found !== undefined) return found
  }
  throw new Error(`${failure} within ${READY_WITHIN_MS} ms`)
}
