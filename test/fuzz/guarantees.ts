import type { Probed } from '../../scripts/bench/health-prober.ts'
import { quantile } from '../../scripts/bench/statistics.ts'
import { type Guarantee, none, noneOf } from '../harness/guarantee.ts'
import type { Stall } from '../harness/loop-probe.ts'
import type { Product } from '../harness/product.ts'
import type { Played } from './play.ts'
import { MAX_STALL_MS } from './stalls.ts'

/** How much more memory may be in use after all cases than before them. */
export const GROWTH_MIB = 16

export function playedGuarantees(title: string, { findings, spans, statuses }: Played): Guarantee[] {
  const tally = [...statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
  const fives = [...statuses].reduce((sum, [status, count]) => (status >= 500 ? sum + count : sum), 0)
  return [
    none(`${title}: rules broken`, findings.length, `of ${spans.length}`),
    none(`${title}: answers of 500 and more`, fives, tally.join(', ')),
  ]
}

export function stallGuarantees(stalls: readonly Stall[], { times, failures }: Probed): Guarantee[] {
  const busy = Math.max(0, ...stalls.map(({ busyMs }) => busyMs))
  // The rest of a stall is time in which other processes, this script among them, used the CPU.
  const pause = Math.max(0, ...stalls.map(({ ms, busyMs }) => ms - busyMs))
  const longest = Math.max(...times)
  const inside = `${stalls.length} of 50 ms and more; pauses caused by other processes ${pause.toFixed(0)} ms`
  const outside = `with the pauses ${longest.toFixed(0)}, median ${quantile(times, 0.5).toFixed(1)}, p99 ${quantile(times, 0.99).toFixed(0)} ms of ${times.length}`
  const goal = { atMost: MAX_STALL_MS }
  return [
    { title: 'longest event-loop stall', value: busy, unit: ' ms', goal, detail: inside },
    {
      title: 'longest /health without the pauses',
      value: Math.max(0, longest - pause),
      unit: ' ms',
      goal,
      detail: outside,
    },
    none('/health not answered', failures),
  ]
}

type Snapshot = { seen: readonly string[]; heapMiB: number }

export function leftoverGuarantees(before: Snapshot, after: Snapshot): Guarantee[] {
  const changed = after.seen.filter((line, i) => line !== before.seen[i])
  const grown = after.heapMiB - before.heapMiB
  const detail = `${before.heapMiB.toFixed(1)} to ${after.heapMiB.toFixed(1)} MiB`
  return [
    noneOf('protected sessions, runs and files changed', changed),
    { title: 'memory in use left behind', value: grown, unit: ' MiB', goal: { atMost: GROWTH_MIB }, detail },
  ]
}

export async function stopGuarantees(product: Product): Promise<Guarantee[]> {
  const code = await product.stop()
  return [noneOf('exits with a code other than 0', code === 0 ? [] : [`code ${code}`])]
}
