import type { Bench } from '../bench.ts'
import { startFlowCluster } from '../cluster.ts'
import { doAtOnce, openWorkCounter, totalOf, type Work, workBetween } from '../database-calls.ts'
import type { Figure } from '../figure.ts'
import { openFlowService } from '../flow-service.ts'
import { once } from '../once.ts'
import { median } from '../statistics.ts'

const WARM_UP = 600
const AT_ONCE = 16
/** Budgets that are never used up. */
const BUDGETS = { tokens_per_day: 1_000_000_000, usd_per_day: 1_000_000 }

/** The CPU and the commands that a budget adds to a model call. Flows of one call each run in rounds, by turns with and without a budget. */
export const budgets: Figure[] = [
  {
    name: 'budget-cpu',
    title: 'CPU of all processes for a flow run with a budget, to one without',
    goal: { atMost: 1.03 },
    unit: 'x',
    async measure(bench) {
      const { free, limited } = await measureBoth(bench)
      const msOf = (rounds: readonly Round[]) => median(rounds.map(({ cpuMs }) => cpuMs)).toFixed(2)
      const value = median(limited.map(({ cpuMs }, i) => cpuMs / (free[i]?.cpuMs ?? Number.NaN)))
      return { value, detail: `${msOf(free)} ms without, ${msOf(limited)} ms with` }
    },
  },
  {
    name: 'budget-calls',
    title: "Redis's commands that a budget adds to a model call",
    goal: { atMost: 0.2 },
    unit: ' calls',
    async measure(bench) {
      const { free, limited } = await measureBoth(bench)
      const added = (name: 'sent' | 'all') =>
        median(limited.map((round, i) => round[name] - (free[i]?.[name] ?? Number.NaN)))
      return { value: added('sent'), detail: `with those in its scripts ${added('all').toFixed(2)}` }
    },
  },
]

/** For one call: the CPU, the scripts that were sent to Redis, and all commands that Redis carried out, those within scripts included. */
type Round = { cpuMs: number; sent: number; all: number }

const measureBoth = once(async (bench: Bench): Promise<Record<'free' | 'limited', Round[]>> => {
  await using cluster = await startFlowCluster(bench)
  using service = await openFlowService(cluster, { bench, counts: [0] })
  await using counter = await openWorkCounter(cluster)
  const count = bench.pick(600, 200)
  const rounds: Record<'free' | 'limited', Round[]> = { free: [], limited: [] }
  const atOnce = (runs: number) => doAtOnce(() => service.run(0), { count: runs, atOnce: AT_ONCE })
  await atOnce(WARM_UP)
  for (let round = 0; round < bench.pick(8, 3); round++) {
    for (const name of round % 2 === 0 ? (['free', 'limited'] as const) : (['limited', 'free'] as const)) {
      await service.limit(name === 'free' ? {} : BUDGETS)
      await atOnce(AT_ONCE)
      const before = await counter.read()
      await atOnce(count)
      rounds[name].push(roundOf(workBetween(before, await counter.read()), count))
    }
  }
  return rounds
})

const roundOf = ({ cpuMs, redis }: Work, count: number): Round => ({
  cpuMs: totalOf(cpuMs) / count,
  sent: (redis['evalsha'] ?? 0) / count,
  all: totalOf(redis) / count,
})
