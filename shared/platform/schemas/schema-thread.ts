import { Worker } from 'node:worker_threads'
import type { SchemaProblem } from './port.ts'

/** Work for a thread, which compiles the schema `id`, and checks `value` if there is one. `schema` is JSON text. */
export type ThreadTask = { id: string; schema?: string; value?: { json: string | undefined } }

/** `unknown`: the thread does not hold the schema, and needs the task again, with the schema. */
export type ThreadAnswer =
  | { type: 'unknown' }
  | { type: 'compiled' }
  | { type: 'unusable'; problem: SchemaProblem }
  | { type: 'checked'; problems: readonly SchemaProblem[] }

/** The first message of a thread. */
export type Ready = { type: 'ready' }

export type ThreadEvents = {
  /** The thread has loaded its code. */
  onReady(): void
  onAnswer(answer: ThreadAnswer): void
  /** The thread has ended by itself: `isMemory` when it had used up its memory, else for a bug. */
  onFailure(cause: unknown, isMemory: boolean): void
}

/**
 * Memory of one thread for its JavaScript objects, in MB. A thread takes some 30 MB when it starts, and with this limit and its code at most
 * some 100 MB.
 */
const HEAP_MB = 64
const YOUNG_MB = 8

/** One thread that compiles schemas. It does not keep the process alive. */
export class SchemaThread {
  #isReady = false
  #isEnded = false
  readonly #worker: Worker

  constructor({ onReady, onAnswer, onFailure }: ThreadEvents) {
    const worker = new Worker(new URL('schema-worker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
    })
    worker.on('message', (message: ThreadAnswer | Ready) => {
      if (this.#isEnded) return
      if (message.type !== 'ready') return onAnswer(message)
      this.#isReady = true
      onReady()
    })
    worker.on('error', (cause: NodeJS.ErrnoException) => {
      if (this.#isEnded) return
      this.#isEnded = true
      onFailure(cause, cause.code === 'ERR_WORKER_OUT_OF_MEMORY')
    })
    worker.unref() // Last: a listener of 'message' takes a reference.
    this.#worker = worker
  }

  get isReady(): boolean {
    return this.#isReady
  }

  /** The CPU time that the thread has used so far, in ms; answered also in the middle of a task. Rejects when the thread has ended. */
  async cpuMs(): Promise<number> {
    const { user, system } = await this.#worker.cpuUsage()
    return (user + system) / 1_000
  }

  send(task: ThreadTask): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#worker.postMessage(task)
  }

  /** Ends the thread, also in the middle of a task. No event follows. */
  async end(): Promise<void> {
    this.#isEnded = true
    await this.#worker.terminate()
  }
}
