import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import type { Entry } from '../../history.ts'
import type { Ended, StreamClient } from '../../stream-client.ts'

/** Starts customers' runs somewhere, which may be unavailable for a while. */
export type RunOpener = {
  readonly history: readonly Entry[]
  open(n: number, run: { customer: string; prompt: string }): StreamClient
}

export type LoadSize = {
  /** The number of recorded runs. Runs that fell back to stateless, because the store was away, come in addition. */
  runs: number
  atOnce: number
  customers: number
  /** The longest duration of a run. */
  maxMs: number
}

/** Every run has a different prompt. */
export type CustomerRun = { customer: string; prompt: string; stream: StreamClient; ended: Ended }

const RETRY_MS = 50
const ALL_WITHIN_MS = 300_000

/** Keeps a number of customers' runs in progress, also while processes are killed. */
export class CustomerLoad {
  /** All runs whose request reached a process, refused ones included. */
  readonly runs: CustomerRun[] = []
  readonly name: string
  readonly #opener: RunOpener
  readonly #size: LoadSize
  readonly #random: Random
  readonly #stateless = new Set<string>()
  readonly #waiting = new Set<() => void>()
  #read = 0
  #sent = 0
  #recorded = 0

  constructor(name: string, { opener, size, random }: { opener: RunOpener; size: LoadSize; random: Random }) {
    this.name = name
    this.#opener = opener
    this.#size = size
    this.#random = random
  }

  get customers(): string[] {
    return Array.from({ length: this.#size.customers }, (_, n) => `${this.name}-${n}`)
  }

  /** Whether a warning said that the run is not recorded. */
  isStateless({ stream }: CustomerRun): boolean {
    return this.#stateless.has(stream.run)
  }

  /** Resolves when all runs have ended. Throws when that takes longer than five minutes. */
  async run(): Promise<void> {
    const deadline = performance.now() + ALL_WITHIN_MS
    await Promise.all(Array.from({ length: this.#size.atOnce }, () => this.#runSome(deadline)))
  }

  /** Resolves when this part of the runs has ended. */
  async reached(part: number): Promise<void> {
    while (this.#recorded < part * this.#size.runs) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  async #runSome(deadline: number): Promise<void> {
    while (this.#recorded < this.#size.runs) {
      if (performance.now() > deadline) {
        throw new Error(`${this.name}: ${this.#recorded} of ${this.#size.runs} runs within ${ALL_WITHIN_MS} ms`)
      }
      const n = this.#sent++
      const customer = this.#random.pick(this.customers)
      const prompt = `/sleep ${this.#random.between(0, this.#size.maxMs)}\n/say answer ${this.name} ${n}`
      const stream = this.#opener.open(n, { customer, prompt })
      this.#count({ customer, prompt, stream, ended: await stream.ended })
      if (stream.run === '') await sleep(RETRY_MS)
    }
  }

  #count(run: CustomerRun): void {
    if (run.stream.isRefused) return
    this.runs.push(run)
    this.#readWarnings()
    const { run: id } = run.stream
    if (id !== '' && !this.#stateless.has(id)) this.#recorded++
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  #readWarnings(): void {
    const fresh = this.#opener.history.slice(this.#read)
    this.#read += fresh.length
    for (const entry of fresh) {
      if (entry.kind === 'frame' && entry.code === 'customer_scope_fallback') this.#stateless.add(entry.run)
    }
  }
}
