import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import type { Entry } from '../../history.ts'
import type { Ended, StreamClient } from '../../stream-client.ts'

/** Where customers' runs are sent; it may be away for a while. */
export type Door = {
  readonly history: readonly Entry[]
  open(n: number, run: { customer: string; prompt: string }): StreamClient
}

export type LoadSize = {
  /** Those that were stateless for want of the store come on top. */
  runs: number
  atOnce: number
  customers: number
  /** A run takes up to so long. */
  maxMs: number
}

/** `prompt` is no other run's. */
export type CustomerRun = { customer: string; prompt: string; stream: StreamClient; ended: Ended }

const AGAIN_MS = 50

/** Runs of customers, some at a time, whatever happens to whom they are sent to. */
export class CustomerLoad {
  /** All that were sent to somebody, those that were refused as well: what becomes of them is not known. */
  readonly runs: CustomerRun[] = []
  readonly name: string
  readonly #door: Door
  readonly #size: LoadSize
  readonly #random: Random
  readonly #stateless = new Set<string>()
  readonly #waiting = new Set<() => void>()
  #read = 0
  #sent = 0
  #taken = 0

  constructor(name: string, { door, size, random }: { door: Door; size: LoadSize; random: Random }) {
    this.name = name
    this.#door = door
    this.#size = size
    this.#random = random
  }

  get customers(): string[] {
    return Array.from({ length: this.#size.customers }, (_, n) => `${this.name}-${n}`)
  }

  /** Did it say that it is not recorded? */
  isStateless({ stream }: CustomerRun): boolean {
    return this.#stateless.has(stream.run)
  }

  /** Resolves when all have ended. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: this.#size.atOnce }, () => this.#runSome()))
  }

  /** Resolves once this part of the runs has ended. */
  async reached(part: number): Promise<void> {
    while (this.#taken < part * this.#size.runs) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  async #runSome(): Promise<void> {
    while (this.#taken < this.#size.runs) {
      const n = this.#sent++
      const customer = this.#random.pick(this.customers)
      const prompt = `/sleep ${this.#random.between(0, this.#size.maxMs)}\n/say answer ${this.name} ${n}`
      const stream = this.#door.open(n, { customer, prompt })
      this.#count({ customer, prompt, stream, ended: await stream.ended })
      if (stream.run === '') await sleep(AGAIN_MS)
    }
  }

  #count(run: CustomerRun): void {
    if (run.stream.isRefused) return
    this.runs.push(run)
    this.#learnStateless()
    const { run: id } = run.stream
    if (id !== '' && !this.#stateless.has(id)) this.#taken++
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  #learnStateless(): void {
    const fresh = this.#door.history.slice(this.#read)
    this.#read += fresh.length
    for (const entry of fresh) {
      if (entry.kind === 'frame' && entry.code === 'customer_scope_fallback') this.#stateless.add(entry.run)
    }
  }
}
