import { until } from '../support/until.ts'
import type { Product } from './product.ts'

/** The module to preload into a process so that `LoopProbe` and `readHeapBytes` can observe it. */
export const LOOP_PROBE_PRELOAD = new URL('loop-probe-preload.ts', import.meta.url)

export type Stall = {
  ms: number
  /** CPU time that the event loop's own thread used during the stall. */
  busyMs: number
  /** End of the stall, in milliseconds since 1970. */
  until: number
}

const BYTES_PER_MIB = 1024 * 1024
const HEAP_WITHIN_MS = 30_000
const LOOK_EVERY_MS = 20
const SETTLED_WITHIN_MS = 20_000

/** Reads what the preloaded module reports about a product's process. */
export class LoopProbe {
  readonly #product: Product

  constructor(product: Product) {
    this.#product = product
  }

  /** The current position in the process's output, as the start for `stalls`. */
  mark(): number {
    return this.#product.lines.length
  }

  /** The stalls of 50 ms and longer since `mark`. */
  stalls(mark: number): Stall[] {
    const lines = this.#product.lines.slice(mark).filter((line) => line.startsWith('{"stall":'))
    return lines.map((line) => (JSON.parse(line) as { stall: Stall }).stall)
  }

  /** The memory in use, heap and buffers, after a garbage collection. */
  async heapMiB(): Promise<number> {
    const product = this.#product
    const bytes = await readHeapBytes({
      name: 'the product',
      output: () => product.lines.join('\n'),
      requestHeap: () => product.signal('SIGUSR2'),
    })
    return bytes / BYTES_PER_MIB
  }

  /** As `heapMiB`, read again until it is at most `atMost`, for 20 s: memory that is still in use then is a leak. */
  async settledHeapMiB(atMost: number): Promise<number> {
    const deadline = performance.now() + SETTLED_WITHIN_MS
    for (;;) {
      const heap = await this.heapMiB()
      if (heap <= atMost || performance.now() >= deadline) return heap
    }
  }
}

/** A process with the preloaded module: its output so far, and a function that sends it SIGUSR2. */
export type HeapSource = { name: string; output(): string; requestHeap(): unknown }

/** Requests one heap report of a process and waits for it. */
export async function readHeapBytes({ name, output, requestHeap }: HeapSource): Promise<number> {
  const before = heapReports(output()).length
  await requestHeap()
  const reports = await until(
    () => {
      const seen = heapReports(output())
      return seen.length > before && seen
    },
    { what: `a heap report of ${name}`, withinMs: HEAP_WITHIN_MS, everyMs: LOOK_EVERY_MS },
  )
  return Number(reports.at(-1)?.[1])
}

const heapReports = (output: string) => [...output.matchAll(/^{"heap":(\d+)}$/gm)]
