import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { startFlowCluster } from '../cluster.ts'
import type { Figure, Measured } from '../figure.ts'
import { type FlowService, openFlowService, SUB_AGENT_MS } from '../flow-service.ts'
import { MASTER_KEY } from '../master-key.ts'
import { median, quantile } from '../statistics.ts'

const AGENTS = 8
const WARM_UP_ROUNDS = 100
/** Between two rounds, so that what a run still does after its answer does not delay the next one. */
const PAUSE_MS = 20

/** Time that a run of a flow adds to a request to its provider, which answers at once. */
export const flowRun: Figure = {
  name: 'flow-run',
  title: 'a flow run beside its provider, added, p50',
  goal: { atMost: 6 },
  unit: ' ms',
  async measure(bench) {
    await using ours = await bench.startOurs('data-flows', { MASTER_KEY })
    using service = await openFlowService({ port: ours.port, basePath: '/v1' }, { bench, counts: [0] })
    return await measureAdded(service, bench)
  },
}

/** The same through a gateway, Redis, an executor and MongoDB. */
export const flowRunCluster: Figure = {
  name: 'flow-run-cluster',
  title: 'the same in a cluster',
  goal: { atMost: 12 },
  unit: ' ms',
  async measure(bench) {
    await using cluster = await startFlowCluster(bench)
    using service = await openFlowService(cluster, { bench, counts: [0] })
    return await measureAdded(service, bench)
  },
}

/** Time of a run with eight sub-agents at a slow provider, to that of a run with one. */
export const flowAgents: Figure = {
  name: 'flow-agents',
  title: `a flow with ${AGENTS} sub-agents to one with 1`,
  goal: { atMost: 1.25 },
  unit: 'x',
  async measure(bench) {
    await using ours = await bench.startOurs('data-flow-agents', { MASTER_KEY })
    using service = await openFlowService({ port: ours.port, basePath: '/v1' }, { bench, counts: [1, AGENTS] })
    const times = { one: [] as number[], eight: [] as number[] }
    for (let round = -2; round < bench.pick(20, 10); round += 1) {
      const one = await msOf(() => service.run(1))
      const eight = await msOf(() => service.run(AGENTS))
      if (round < 0) continue
      times.one.push(one)
      times.eight.push(eight)
    }
    const shown = (values: number[]) => `${median(values).toFixed(0)} ms`
    const detail = `1: ${shown(times.one)}, ${AGENTS}: ${shown(times.eight)}, the provider takes ${SUB_AGENT_MS} ms`
    return { value: median(times.eight) / median(times.one), detail }
  },
}

/** Sends requests one at a time, alternately to the provider and to the product. */
async function measureAdded(service: FlowService, bench: Bench): Promise<Measured> {
  const times = { direct: [] as number[], ours: [] as number[] }
  for (let round = -WARM_UP_ROUNDS; round < bench.pick(300, 100); round += 1) {
    const direct = await msOf(() => service.direct())
    const ours = await msOf(() => service.run(0))
    await sleep(PAUSE_MS, undefined, { signal: bench.signal })
    if (round < 0) continue
    times.direct.push(direct)
    times.ours.push(ours)
  }
  const shown = (values: number[]) => `p50 ${median(values).toFixed(2)} ms, p99 ${quantile(values, 0.99).toFixed(1)} ms`
  return {
    value: median(times.ours) - median(times.direct),
    detail: `provider ${shown(times.direct)}; flow ${shown(times.ours)}`,
  }
}

async function msOf(work: () => Promise<void>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}
