import { setTimeout as sleep } from 'node:timers/promises'
import { type Document, MongoClient } from 'mongodb'
import { checkMongo } from './mongo-facts.ts'
import { type MongoMember, startMember } from './mongo-member.ts'
import { ensureMongod, requireMongod } from './mongo-server.ts'

/**
 * Opens the MongoDB of a cluster (D1.2): the replica set at `url`, or without one a private replica set of one member, for
 * which mongod is fetched where possible. `set` is the private one, which the caller must stop.
 */
export async function openMongo(
  url: string | undefined,
  say: (line: string) => void,
): Promise<{ url: string; set?: MongoSet }> {
  if (url) {
    const { version, setName } = await checkMongo(url)
    if (setName === undefined)
      throw new Error('the MongoDB of MONGODB_URL is not a replica set: start it with --replSet')
    say(`Using the MongoDB ${version} of MONGODB_URL (replica set ${setName}).`)
    return { url }
  }
  const { version } = await ensureMongod(say)
  const set = await startMongoSet()
  say(`Started MongoDB ${version} at ${set.url} (pid ${set.members.map(({ pid }) => pid).join(', ')}).`)
  return { url: set.url, set }
}

const SET_NAME = 'agent-engine'
/** Shorter than the default of ten seconds, which is for members on different machines. */
const ELECTION_MS = 2_000
const HEARTBEAT_MS = 500

/** Starts a private replica set with its files below `parent`. Resolves when it accepts writes and all members have joined. */
export async function startMongoSet(count = 1, parent?: string): Promise<MongoSet> {
  const { command } = await requireMongod()
  const starts = await Promise.allSettled(Array.from({ length: count }, () => startMember(command, SET_NAME, parent)))
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

const READY_WITHIN_MS = 90_000
const ASK_EVERY_MS = 20

/** A private replica set. */
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
    if (first) await runCommand(first, { replSetInitiate: { _id: SET_NAME, members, settings } })
    await this.settled()
  }

  /** The current primary. Waits up to 90 s for an election. */
  async primary(): Promise<MongoMember> {
    return until(async () => {
      for (const member of this.members) {
        const isPrimary = member.isRunning && (await runCommand(member, { hello: 1 }))['isWritablePrimary'] === true
        if (isPrimary) return member
      }
      return undefined
    }, 'no primary was elected')
  }

  /** Resolves when there is a primary and all running members can be elected. Throws after 90 s. */
  async settled(): Promise<void> {
    const primary = await this.primary()
    await until(async () => {
      const { members = [] } = (await runCommand(primary, { replSetGetStatus: 1 })) as {
        members?: { stateStr: string }[]
      }
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

/** Sends a command to one member, whatever its state. */
async function runCommand({ host }: MongoMember, command: Document): Promise<Document> {
  const limits = { serverSelectionTimeoutMS: 2000, socketTimeoutMS: 5000 }
  const client = new MongoClient(`mongodb://${host}/?directConnection=true`, limits)
  try {
    return await client.db('admin').command(command)
  } finally {
    await client.close()
  }
}

/** Calls `look` until its result is defined. A call that throws counts as undefined. Throws after 90 s. */
async function until<T>(look: () => Promise<T | undefined>, failure: string): Promise<T> {
  for (const deadline = performance.now() + READY_WITHIN_MS; performance.now() < deadline; await sleep(ASK_EVERY_MS)) {
    const found = await look().catch(() => undefined)
    if (found !== undefined) return found
  }
  throw new Error(`${failure} within ${READY_WITHIN_MS} ms`)
}
