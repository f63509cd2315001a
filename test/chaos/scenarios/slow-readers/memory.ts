import { setTimeout as sleep } from 'node:timers/promises'
import { rssMiB } from '../../../../scripts/bench/proc.ts'
import { now } from '../../history.ts'
import type { Member, World } from '../../world.ts'

const EVERY_MS = 200
const HEAP_WITHIN_MS = 5_000
const BYTES_PER_KIB = 1024

/** Watches what all processes hold together, from now until it is disposed of; the history gets each one's share. */
export class MemoryWatch implements Disposable {
  readonly #world: World
  readonly #before: number
  readonly #timer: NodeJS.Timeout
  /** The most that they have grown by together. */
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

/** What is in use in a process after a garbage collection, buffers included; test/harness/loop-probe-thread.ts tells it. */
export async function heapKiB({ name, proc }: Member): Promise<number> {
  const before = told(proc.output)
  await proc.kill('SIGUSR2')
  const end = performance.now() + HEAP_WITHIN_MS
  while (performance.now() < end) {
    await sleep(20)
    const lines = told(proc.output)
    const bytes = Number(lines.at(-1)?.[1])
    if (lines.length > before.length) return bytes / BYTES_PER_KIB
  }
  throw new Error(`${name} does not tell its heap`)
}

const told = (output: string) => [...output.matchAll(/^{"heap":(\d+)}$/gm)]
