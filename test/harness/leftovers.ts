import { setTimeout as sleep } from 'node:timers/promises'
import { rssMiB } from '../../scripts/bench/proc.ts'
import { type Guarantee, noneOf } from './guarantee.ts'
import { LoopProbe } from './loop-probe.ts'
import type { Product } from './product.ts'

const GROWTH_MIB = 8
const SETTLE_MS = 500
const CLOSE_WITHIN_MS = 5_000
const LOOK_EVERY_MS = 100
const WARM_UPS = 200

/**
 * Records memory and open files of an idle product. The returned function compares them with those after an attack; call
 * it when the attack is over.
 */
export async function watchLeftovers(product: Product): Promise<() => Promise<Guarantee[]>> {
  await warmUp(product)
  const before = await takeSnapshot(product)
  return async () => {
    await closedFiles(product, before.files)
    return compare(before, await takeSnapshot(product, before.heap + GROWTH_MIB), product)
  }
}

type Snapshot = { heap: number; rss: number; files: number }

/** Waits until no more files are open than before. After the deadline the comparison reports what is still open. */
async function closedFiles(product: Product, before: number): Promise<void> {
  const deadline = performance.now() + CLOSE_WITHIN_MS
  while (product.openFiles > before && performance.now() < deadline) await sleep(LOOK_EVERY_MS)
}

function compare(before: Snapshot, after: Snapshot, product: Product): Guarantee[] {
  const mib = (what: 'heap' | 'rss') => `${before[what].toFixed(0)} to ${after[what].toFixed(0)} MiB`
  return [
    {
      title: 'memory in use left behind',
      value: after.heap - before.heap,
      unit: ' MiB',
      goal: { atMost: GROWTH_MIB },
      detail: `${mib('heap')}, resident ${mib('rss')}`,
    },
    {
      title: 'sockets and files left behind',
      value: Math.max(0, after.files - before.files),
      unit: '',
      goal: { atMost: 0 },
    },
    noneOf('errors in the log', errorsIn(product)),
  ]
}

/** Waits for the heap to be at most `atMost` MiB. */
async function takeSnapshot(product: Product, atMost = Number.POSITIVE_INFINITY): Promise<Snapshot> {
  await sleep(SETTLE_MS)
  const heap = await new LoopProbe(product).settledHeapMiB(atMost)
  return { heap, rss: rssMiB(product.pid), files: product.openFiles }
}

/** The log lines that indicate a bug: level `error`, or output that is not a log line. A refused request logs neither. */
export const errorsIn = ({ lines }: Product): string[] =>
  lines.filter((line) => line.includes('"level":"error"') || !line.startsWith('{'))

async function warmUp({ port }: Product): Promise<void> {
  for (let i = 0; i < WARM_UPS; i += 1) await (await fetch(`http://127.0.0.1:${port}/v1/health`)).arrayBuffer()
}
