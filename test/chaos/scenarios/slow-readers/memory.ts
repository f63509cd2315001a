import { rssMiB } from '../../../../scripts/bench/proc.ts'
import { readHeapBytes } from '../../../harness/loop-probe.ts'
import { now } from '../../history.ts'
import type { Member, World } from '../../world.ts'

const EVERY_MS = 200
const BYTES_PER_KIB = 1024

/** The growth of all processes together, and of each. */
export type Growth = { mib: number; byProcess: string }

/** Samples the resident memory of all processes, Redis included, until it is disposed of, and records it in the history. */
export class MemoryWatch implements Disposable {
  readonly #world: World
  readonly #before: ReadonlyMap<string, number>
  readonly #timer: NodeJS.Timeout
  /** When the sum was largest so far. */
  growth: Growth = { mib: 0, byProcess: '' }

  constructor(world: World) {
    this.#world = world
    this.#before = this.#look()
    this.#timer = setInterval(() => this.#measure(), EVERY_MS)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #measure(): void {
    const grown = [...this.#look()].map(([name, mib]) => ({ name, mib: mib - (this.#before.get(name) ?? 0) }))
    const mib = grown.reduce((sum, each) => sum + each.mib, 0)
    if (mib <= this.growth.mib) return
    this.growth = { mib, byProcess: grown.map((each) => `${each.name} ${signed(each.mib)}`).join(', ') }
  }

  /** The resident memory by process, in MiB. */
  #look(): Map<string, number> {
    const { gateways, workers, redis } = this.#world
    const rss = new Map([...gateways, ...workers].map(({ name, proc }) => [name, rssMiB(proc.pid)]))
    for (const [n, { pid }] of redis.servers.entries()) rss.set(`redis ${n + 1}`, rssMiB(pid))
    for (const [what, mib] of rss) this.#world.record({ kind: 'memory', t: now(), what, rssMiB: mib })
    return rss
  }
}

const signed = (mib: number): string => `${mib < 0 ? '' : '+'}${mib.toFixed(0)}`

/** The memory in use of a process after a garbage collection, buffers included. */
export async function heapKiB({ name, proc }: Member): Promise<number> {
  const requestHeap = () => proc.kill('SIGUSR2')
  return (await readHeapBytes({ name, output: () => proc.output, requestHeap })) / BYTES_PER_KIB
}
