import { setTimeout as sleep } from 'node:timers/promises'
import { rssMiB } from '../../scripts/bench/proc.ts'
import { quantile } from '../../scripts/bench/statistics.ts'
import type { Guarantee } from './guarantee.ts'
import { LoopProbe } from './loop-probe.ts'
import { type Probed, Prober } from './prober.ts'
import type { Product } from './product.ts'

const HEALTH_P99_MS = 100
const GROWTH_MIB = 8
const SETTLE_MS = 500
const WARM_UPS = 200

/** All of them. */
export const countOf = (title: string, value: number, wanted: number): Guarantee => ({
  title,
  value,
  unit: '',
  goal: { atLeast: wanted },
  detail: `of ${wanted}`,
})

export const noneOf = (title: string, found: readonly string[]): Guarantee => ({
  title,
  value: found.length,
  unit: '',
  goal: { atMost: 0 },
  detail: (found[0] ?? '').slice(0, 300),
})

type Health = { kept: Probed; fresh: Probed }

/** Asks for /health until it is stopped: on one connection that is kept, and on a new one each time. */
export function startHealth({ port }: Product): { stop(): Promise<Health> } {
  const kept = new Prober(port)
  const fresh = new Prober(port, { everyMs: 200, isFresh: true })
  return { stop: async () => ({ kept: await kept.stop(), fresh: await fresh.stop() }) }
}

export function healthPromises({ kept, fresh }: Health): Guarantee[] {
  return [
    healthPromise('/health p99 meanwhile', kept),
    healthPromise('/health p99 meanwhile, new connections', fresh),
    { title: '/health not answered', value: kept.failures + fresh.failures, unit: '', goal: { atMost: 0 } },
  ]
}

function healthPromise(title: string, { times }: Probed): Guarantee {
  const detail = `median ${quantile(times, 0.5).toFixed(1)}, longest ${Math.max(...times).toFixed(0)} ms of ${times.length}`
  return { title, value: quantile(times, 0.99), unit: ' ms', goal: { atMost: HEALTH_P99_MS }, detail }
}

/** Looks at a process at rest; what is returned looks again, once it rests again, and tells what was left behind. */
export async function leftBehind(product: Product): Promise<() => Promise<Guarantee[]>> {
  await warmUp(product)
  const before = await lookAt(product)
  return async () => {
    for (let tries = 0; tries < 50 && product.openFiles > before.files; tries += 1) await sleep(100)
    const after = await lookAt(product)
    const detail = `${before.heap.toFixed(0)} to ${after.heap.toFixed(0)} MiB, resident ${before.rss.toFixed(0)} to ${after.rss.toFixed(0)} MiB`
    return [
      {
        title: 'memory in use left behind',
        value: after.heap - before.heap,
        unit: ' MiB',
        goal: { atMost: GROWTH_MIB },
        detail,
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
}

async function lookAt(product: Product): Promise<{ heap: number; rss: number; files: number }> {
  await sleep(SETTLE_MS)
  const heap = await new LoopProbe(product).heapMiB()
  return { heap, rss: rssMiB(product.pid), files: product.openFiles }
}

/** Lines that tell of a bug: a refusal, however odd the request, is none. */
export const errorsIn = ({ lines }: Product): string[] =>
  lines.filter((line) => line.includes('"level":"error"') || !line.startsWith('{'))

async function warmUp({ port }: Product): Promise<void> {
  for (let i = 0; i < WARM_UPS; i += 1) await (await fetch(`http://127.0.0.1:${port}/v1/health`)).arrayBuffer()
}
