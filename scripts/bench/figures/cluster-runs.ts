import type { Bench } from '../bench.ts'
import { Client, type Target } from '../client.ts'
import { startRunCluster } from '../cluster.ts'
import type { Figure } from '../figure.ts'
import { once } from '../once.ts'
import { cpuMs } from '../proc.ts'
import { addedRatio, median } from '../statistics.ts'

const TOKENS = 5
/** Until V8 has compiled what a run uses: users have servers that have run for a while. */
const WARM_UP_RUNS = 3_000
/** Runs between two readings of the CPU time, whose unit is 10 ms. */
const RUNS = 250

/** Time that a gateway and a worker add to the provider's own, with one request at a time, beside what the least gateway adds. */
export const clusterFirstEvent: Figure = {
  name: 'cluster-first-event',
  title: 'the same in a cluster of a gateway and a worker',
  goal: { atMost: 4.5 },
  unit: 'x',
  measure: async (bench) => {
    const { firstMs } = await measureBoth(bench)
    const shown = Object.entries(firstMs).map(([name, values]) => `${name} ${median(values).toFixed(3)} ms`)
    return { value: addedRatio(firstMs), detail: shown.join(', ') }
  },
}

/** CPU time of gateway, worker and Redis for a run, with one run at a time. */
export const clusterCpu: Figure = {
  name: 'cluster-cpu',
  title: 'CPU of a run in that cluster, one at a time',
  goal: { atMost: 2.88 },
  unit: ' ms',
  measure: async (bench) => {
    const { cpu } = await measureBoth(bench)
    const detail = `baseline ${median(cpu.baseline).toFixed(2)} ms, ours ${median(cpu.ours).toFixed(2)} ms`
    return { value: median(cpu.ours), detail }
  },
}

type Server = 'direct' | 'baseline' | 'ours'
type Both = { firstMs: Record<Server, number[]>; cpu: Record<Server, number[]> }

/** Provider, least gateway and cluster take turns. */
const measureBoth = once(async (bench: Bench): Promise<Both> => {
  await using cluster = await startRunCluster(bench)
  const [provider, baseline] = [await bench.provider(), await bench.baseline()]
  const servers: [name: Server, target: Target, pids: readonly number[]][] = [
    ['direct', provider, [provider.pid]],
    ['baseline', baseline, [baseline.pid]],
    ['ours', cluster, cluster.pids],
  ]
  const both: Both = { firstMs: { direct: [], baseline: [], ours: [] }, cpu: { direct: [], baseline: [], ours: [] } }
  for (let round = -1; round < bench.pick(3, 2); round += 1) {
    for (const [name, target, pids] of servers) {
      using client = new Client(target, bench.signal)
      const before = cpuOf(pids)
      const times = await runOneByOne(client, round < 0 ? WARM_UP_RUNS : RUNS)
      if (round < 0) continue
      both.firstMs[name].push(...times)
      both.cpu[name].push((cpuOf(pids) - before) / RUNS)
    }
  }
  return both
})

const cpuOf = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + cpuMs(pid), 0)

async function runOneByOne(client: Client, count: number): Promise<number[]> {
  const times: number[] = []
  while (times.length < count) times.push((await client.stream(TOKENS)).firstMs)
  return times
}
