import { setTimeout as sleep } from 'node:timers/promises'
import { type Db, MongoServerError } from 'mongodb'
import type { Health } from '../../health.ts'
import { createDeadline } from './guard.ts'

type KeeperDeps = {
  db: Db
  health: Health
  /** What has to be done once before the store is used; tried again until it succeeds. */
  prepare: () => Promise<void>
  onProblem: (line: string) => void
}

const EVERY_MS = 1_000
const PING_MS = 2_500
/** A ping that is answered is answered by then. */
const STOP_MS = 1_000

/** Looks once a second whether a primary answers, so that readiness is known without traffic, and prepares it the first time. */
export function createKeeper({ db, health, prepare, onProblem }: KeeperDeps) {
  const stopping = new AbortController()
  const firstLook = Promise.withResolvers<void>()
  let isReady = false
  let problem = ''

  const look = async () => {
    try {
      // A client whose first connection failed stays closed until it is told to connect again.
      if (!isReady) await db.client.connect()
      await ping(db)
      if (!isReady) await prepare()
      isReady = true
      health.answered()
    } catch (cause) {
      health.failed()
      const line = problemOf(cause)
      if (line && line !== problem) onProblem(line)
      problem = line
    }
  }
  const run = async () => {
    while (!stopping.signal.aborted) {
      await look()
      firstLook.resolve()
      await sleep(EVERY_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  }
  const running = run()
  return {
    isReady: () => isReady,
    /** Resolves when it has been asked once, whatever it said. */
    firstLook: firstLook.promise,
    /** Waits for the look that is under way, but for no index that takes its time. */
    async stop() {
      stopping.abort()
      const patience = new AbortController()
      const isOver = sleep(STOP_MS, undefined, { signal: patience.signal }).catch(() => {})
      await Promise.race([running, isOver])
      patience.abort()
    },
  }
}

async function ping(db: Db): Promise<void> {
  const { signal, clear } = createDeadline(PING_MS)
  try {
    await db.command({ ping: 1 }, { signal })
  } finally {
    clear()
  }
}

/** What the server refuses stays refused until somebody acts; no answer is told by `awayMs`. */
function problemOf(cause: unknown): string {
  if (cause instanceof MongoServerError) return `MongoDB refuses: ${cause.codeName ?? `code ${cause.code}`}`
  return cause instanceof StoreProblem ? cause.message : ''
}

/** Says in its message what an operator has to change. */
export class StoreProblem extends Error {}
