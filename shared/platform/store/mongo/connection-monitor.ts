import { setTimeout as sleep } from 'node:timers/promises'
import { type Db, MongoServerError } from 'mongodb'
import type { Health } from '../../../kernel/health.ts'
import { createDeadlineSignal } from './guard.ts'
import type { ServerClock } from './server-clock.ts'

export type ConnectionMonitorDeps = {
  db: Db
  health: Health
  clock: ServerClock
  /** Runs before the store is first used; repeated at each check until it succeeds. */
  prepare: () => Promise<void>
  /** Called once for each new problem that an operator has to solve. */
  onProblem: (problem: string) => void
}

const CHECK_EVERY_MS = 1_000
const ANSWER_TIMEOUT_MS = 2_500
/** How long `stop` waits for a check that is running. */
const STOP_TIMEOUT_MS = 1_000

/** Checks once a second whether MongoDB's primary answers, so that readiness is known without traffic, and reads its clock. */
export class ConnectionMonitor {
  readonly #deps: ConnectionMonitorDeps
  readonly #stopping = new AbortController()
  readonly #firstCheck = Promise.withResolvers<void>()
  #running: Promise<void> = Promise.resolve()
  #isReady = false
  #problem = ''

  constructor(deps: ConnectionMonitorDeps) {
    this.#deps = deps
  }

  /** Whether MongoDB has answered and been prepared since the start. */
  get isReady(): boolean {
    return this.#isReady
  }

  /** Begins to check. Resolves after the first check, whatever its result. */
  start(): Promise<void> {
    this.#running = this.#run()
    return this.#firstCheck.promise
  }

  /** Waits for a check that is running, but not for an index that takes long to build. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const timer = new AbortController()
    const timeout = sleep(STOP_TIMEOUT_MS, undefined, { signal: timer.signal }).catch(() => {})
    await Promise.race([this.#running, timeout])
    timer.abort()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#check()
      this.#firstCheck.resolve()
      await sleep(CHECK_EVERY_MS, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  async #check(): Promise<void> {
    const { db, health, clock, prepare, onProblem } = this.#deps
    try {
      // A client whose first connection failed does not reconnect by itself.
      if (!this.#isReady) await db.client.connect()
      clock.observe(await askTime(db))
      if (!this.#isReady) await prepare()
      this.#isReady = true
      health.answered()
    } catch (cause) {
      health.failed()
      const problem = problemOf(cause)
      if (problem && problem !== this.#problem) onProblem(problem)
      this.#problem = problem
    }
  }
}

/** Asks the primary for its time. */
async function askTime(db: Db): Promise<Date> {
  const { signal, clear } = createDeadlineSignal(ANSWER_TIMEOUT_MS)
  try {
    const { localTime } = await db.command({ hello: 1 }, { signal })
    return localTime as Date
  } finally {
    clear()
  }
}

/** A refusal by the server lasts until an operator acts, so it is reported. A missing answer is not reported: `awayMs` shows it. */
function problemOf(cause: unknown): string {
  if (cause instanceof MongoServerError)
    return `MongoDB refuses the connection: ${cause.codeName ?? `code ${cause.code}`}`
  return cause instanceof StoreProblem ? cause.message : ''
}

/** A problem that only an operator can solve; the message says what to change. */
export class StoreProblem extends Error {}
