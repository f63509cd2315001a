import { setTimeout as sleep } from 'node:timers/promises'
import type { Product } from './product.ts'

export const INSIDE = new URL('loop-probe-thread.ts', import.meta.url)

export type Stall = {
  ms: number
  /** What the event loop's own thread computed of it. */
  busyMs: number
  /** When it was over, in milliseconds since 1970. */
  until: number
}

const BYTES_PER_MIB = 1024 * 1024
const HEAP_WITHIN_MS = 5_000

/** What `inside.ts` tells of the process that it was loaded into. */
export class LoopProbe {
  readonly #product: Product

  constructor(product: Product) {
    this.#product = product
  }

  /** Now, for `stalls`. */
  mark(): number {
    return this.#product.lines.length
  }

  /** Of 50 ms and more, since `mark`. */
  stalls(mark: number): Stall[] {
    return this.#said(mark).flatMap((said) => ('stall' in said ? [said.stall as Stall] : []))
  }

  /** The memory in use, objects and buffers, after a garbage collection. */
  async heapMiB(): Promise<number> {
    const from = this.mark()
    this.#product.signal('SIGUSR2')
    const end = performance.now() + HEAP_WITHIN_MS
    while (performance.now() < end) {
      await sleep(20)
      const [bytes] = this.#said(from).flatMap((said) => ('heap' in said ? [Number(said.heap)] : []))
      if (bytes !== undefined) return bytes / BYTES_PER_MIB
    }
    throw new Error('the process does not tell its heap')
  }

  #said(from: number): object[] {
    const lines = this.#product.lines.slice(from).filter((line) => /^{"(stall|heap)":/.test(line))
    return lines.map((line) => JSON.parse(line) as object)
  }
}
