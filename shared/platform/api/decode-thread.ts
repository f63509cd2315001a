import { Worker } from 'node:worker_threads'
import { AppError, toAppError } from '../../kernel/errors.ts'
import type { Decoded, Lines } from './decode.ts'

export type DecodeTask = { name: string; bytes: Uint8Array<ArrayBuffer>; lines?: Lines | undefined }

/** `heapBytes`: the memory of the thread after decoding. */
export type DecodeAnswer = { decoded: Decoded; heapBytes: number }

/**
 * A thread that has more than `keptBytes` of memory after a body is ended: with a limit for the worst body, its garbage
 * collector could leave hundreds of MB.
 */
export type DecodeThreadLimits = { deadlineMs: number; maxWaiting: number; idleMs: number; keptBytes: number }

type Job = DecodeTask & {
  resolve(decoded: Decoded): void
  reject(error: AppError): void
  timer: NodeJS.Timeout
}

/** A thread that exceeds this would end the process. The worst body of 10 MB that was found takes 250 MB. */
const HEAP_MB = 1_024

/**
 * Decodes large bodies in a thread, because parsing 10 MB of small objects would block the event loop for 400 ms. The thread starts with
 * the first body, ends after `idleMs` without one or with more than `keptBytes`, and does not keep the process alive.
 */
export class DecodeThread {
  readonly #limits: DecodeThreadLimits
  readonly #waiting: Job[] = []
  #current: Job | undefined
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(limits: DecodeThreadLimits) {
    this.#limits = limits
  }

  /** Decodes one body. Transfers `bytes` to the thread. Throws `unavailable` when too many bodies wait, or after the deadline. */
  async decode(task: DecodeTask): Promise<Decoded> {
    if (this.#waiting.length >= this.#limits.maxWaiting) throw busy()
    const { promise, resolve, reject } = Promise.withResolvers<Decoded>()
    const timer = setTimeout(() => this.#abandon(job), this.#limits.deadlineMs).unref()
    const job: Job = { ...task, resolve, reject, timer }
    this.#waiting.push(job)
    this.#next()
    return promise
  }

  #next(): void {
    if (this.#current) return
    this.#current = this.#waiting.shift()
    clearTimeout(this.#idle)
    if (!this.#current) {
      this.#idle = setTimeout(() => this.#stop(), this.#limits.idleMs).unref()
      return
    }
    this.#worker ??= this.#start()
    const { name, bytes, lines } = this.#current
    this.#worker.postMessage({ name, bytes, lines } satisfies DecodeTask, [bytes.buffer])
  }

  #start(): Worker {
    const worker = new Worker(new URL('decode-worker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    // A message of a thread that was already replaced is ignored.
    worker.on('message', ({ decoded, heapBytes }: DecodeAnswer) => {
      if (worker !== this.#worker) return
      if (heapBytes > this.#limits.keptBytes) this.#stop()
      this.#settle((job) => job.resolve(decoded))
    })
    worker.once('error', (cause) => {
      if (worker !== this.#worker) return
      this.#worker = undefined
      this.#settle((job) => job.reject(toAppError(cause)))
    })
    worker.unref() // As the last step, because adding a listener of 'message' refs the worker again.
    return worker
  }

  #settle(settle: (job: Job) => void): void {
    const job = this.#current
    if (!job) return
    clearTimeout(job.timer)
    this.#current = undefined
    settle(job)
    this.#next()
  }

  #abandon(job: Job): void {
    job.reject(busy())
    if (job !== this.#current) {
      this.#waiting.splice(this.#waiting.indexOf(job), 1)
      return
    }
    this.#stop()
    this.#current = undefined
    this.#next()
  }

  #stop(): void {
    const worker = this.#worker
    this.#worker = undefined
    void worker?.terminate()
  }
}

const busy = () =>
  new AppError('unavailable', 'the server is reading too many large bodies; try again in a moment', {
    retryAfterSecs: 1,
  })
