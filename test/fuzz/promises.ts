import { quantile } from '../../scripts/bench/statistics.ts'
import type { Guarantee } from '../harness/guarantee.ts'
import { noneOf } from '../harness/guarantees.ts'
import type { Stall } from '../harness/loop-probe.ts'
import type { Probed } from '../harness/prober.ts'
import type { Product } from '../harness/product.ts'
import type { Played } from './play.ts'
import { MAX_STALL_MS } from './stalls.ts'

const GROWTH_MIB = 16

export function playedPromises(title: string, { findings, spans, statuses }: Played): Guarantee[] {
  const tally = [...statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
  const fives = [...statuses].reduce((sum, [status, count]) => (status >= 500 ? sum + count : sum), 0)
  return [
    {
      title: `${title}: promises broken`,
      value: findings.length,
      unit: '',
      goal: { atMost: 0 },
      detail: `of ${spans.length}`,
    },
    {
      title: `${title}: answers of 500 and more`,
      value: fives,
      unit: '',
      goal: { atMost: 0 },
      detail: tally.join(', '),
    },
  ]
}

export function stallPromises(stalls: readonly Stall[], { times, failures }: Probed): Guarantee[] {
  const busy = Math.max(0, ...stalls.map(({ busyMs }) => busyMs))
  // What the loop's thread did not compute itself went to the others on this machine, this script among them.
  const pause = Math.max(0, ...stalls.map(({ ms, busyMs }) => ms - busyMs))
  const longest = Math.max(...times)
  const inside = `${stalls.length} of 50 ms and more; the machine’s own pauses ${pause.toFixed(0)} ms`
  const outside = `with them ${longest.toFixed(0)}, median ${quantile(times, 0.5).toFixed(1)}, p99 ${quantile(times, 0.99).toFixed(0)} ms of ${times.length}`
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
    { title: '/health not answered', value: failures, unit: '', goal: { atMost: 0 } },
  ]
}

type Look = { seen: readonly string[]; heapMiB: number }

export function restPromises(before: Look, after: Look): Guarantee[] {
  const changed = after.seen.filter((line, i) => line !== before.seen[i])
  const grown = after.heapMiB - before.heapMiB
  const detail = `${before.heapMiB.toFixed(1)} to ${after.heapMiB.toFixed(1)} MiB`
  return [
    noneOf('canaries and files changed', changed),
    { title: 'memory in use left behind', value: grown, unit: ' MiB', goal: { atMost: GROWTH_MIB }, detail },
  ]
}

export async function stopPromises(product: Product): Promise<Guarantee[]> {
  const code = await product.stop()
  return [noneOf('ends other than with code 0', code === 0 ? [] : [`code ${code}`])]
}
