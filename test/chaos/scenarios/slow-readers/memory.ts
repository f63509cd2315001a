import { rssMiB } from '../../../../scripts/bench/proc.ts'
import { readHeapBytes } from '../../../harness/loop-probe.ts'
import { now } from '../../history.ts'
import type { Member, World } from '../../world.ts'

const EVERY_MS = 200
const BYTES_PER_KIB = 1024

/** Samples the resident memory of all processes until it is disposed of, and records it in the history. */
export class MemoryWatch implements Disposable {
  readonly #world: World
  readonly #before: number
  readonly #timer: NodeJS.Timeout
  /** The largest growth of their sum so far. */
  grownMiB = 0

  constructor(world: World) {
    this.#world = world
    this.#before = this.#look()
    this.#timer = setInterval(() => {
      this.grownMiB = Math.max(this.grownMiB, this.#look() - this.#before)
    }, EVERY_MS)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #look(): number {
    const { gateways, workers } = this.#world
    let sum = 0
    for (const { name, proc } of [...gateways, ...workers]) {
      const rss = rssMiB(proc.pid)
      this.#world.record({ kind: 'memory', t: now(), what: name, rssMiB: rss })
      sum += rss
    }
    return sum
  }
}

/** The memory in use of a process after a garbage collection, buffers included. */
export async function heapKiB({ name, proc }: Member): Promise<number> {
  const requestHeap = () => proc.kill('SIGUSR2')
  return (await readHeapBytes({ name, output: () => proc.output, requestHeap })) / BYTES_PER_KIB
}
