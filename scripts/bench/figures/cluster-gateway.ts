import type { Bench } from '../bench.ts'
import { startRunCluster } from '../cluster.ts'
import type { Figure, Measured } from '../figure.ts'
import { compare, play, type Rounds } from './paced-streams.ts'

/** Until V8 has compiled what relays events. */
const WARM_UP_ROUNDS = 4

/** CPU time of the gateway of a cluster, whose worker has the runs, beside the least gateway, which calls the provider itself. */
export const clusterGateway: Figure = {
  name: 'cluster-gateway',
  title: 'CPU of the gateway in that cluster, streams at the pace of a model',
  goal: { atMost: 1.4 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  await using cluster = await startRunCluster(bench)
  const [pid = 0] = cluster.pidsOf['gateway'] ?? []
  const [baseline, ours] = [await bench.baseline(), { ...cluster, pid }]
  const rounds: Rounds = { baseline: [], ours: [] }
  for (let round = -WARM_UP_ROUNDS; round < bench.pick(5, 3); round += 1) {
    const [first, second] = [await play(baseline, bench), await play(ours, bench)]
    if (round < 0) continue
    rounds.baseline.push(first)
    rounds.ours.push(second)
  }
  return compare(rounds, ({ cpuMs }) => cpuMs, ' ms')
}
