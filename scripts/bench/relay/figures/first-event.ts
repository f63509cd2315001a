import { median } from '../../statistics.ts'
import type { Load } from '../load.ts'
import type { RelayBench } from '../relay-bench.ts'
import type { Row } from '../row.ts'
import { format } from '../table.ts'
import { BARE_PATH, type Target } from '../target.ts'

const PER_SECOND = 300

/** Time from a request to its first event, through the relay and in the same code without it (G8). */
export async function measureFirstEvent(bench: RelayBench): Promise<Row[]> {
  const count = bench.pick(300, 100)
  const one = await compare(bench, (load, target) => load.oneAtATime(target, count))
  const ms = bench.pick(2_000, 700)
  const many = await compare(bench, (load, target) => load.atRate(target, { perSecond: PER_SECOND, ms }))
  return [
    {
      goal: 'G8',
      what: 'TTFB / direct, one at a time',
      value: one.times,
      bound: { atMost: 3 },
      unit: 'x',
      detail: one.detail,
    },
    {
      goal: 'G8',
      what: 'TTFB added, one at a time',
      value: one.added,
      bound: { atMost: 0.25 },
      unit: ' ms',
      detail: '',
    },
    {
      goal: 'G8',
      what: 'TTFB / direct, 300/s',
      value: many.times,
      bound: { atMost: 2.2 },
      unit: 'x',
      detail: many.detail,
    },
    { goal: 'G8', what: 'TTFB / BullMQ dispatch', bound: { atMost: 0.3 }, unit: 'x', detail: 'there is no queue yet' },
  ]
}

type Compared = { times: number; added: number; detail: string }

async function compare(bench: RelayBench, first: (load: Load, target: Target) => Promise<number>): Promise<Compared> {
  const load = await bench.load()
  const relay = (await bench.relay()).target
  const targets = [await bench.directTarget(), relay, await bench.directTarget(BARE_PATH)]
  for (const target of targets) await first(load, target)
  const rounds: [direct: number, relay: number, bare: number][] = []
  for (let round = 0; round < bench.pick(5, 2); round++) {
    const taken = []
    for (const target of targets) taken.push(await first(load, target))
    const [direct = 0, relayed = 0, bare = 0] = taken
    rounds.push([direct, relayed, bare])
  }
  const middle = (of: (round: (typeof rounds)[number]) => number) => median(rounds.map(of))
  const ms = [1, 0, 2].map((at) => format(middle((round) => round[at] ?? 0)))
  return {
    times: middle(([direct, relayed]) => relayed / direct),
    added: middle(([direct, relayed]) => relayed - direct),
    detail: `${ms[0]} to ${ms[1]} ms; plain express ${ms[2]} ms`,
  }
}
