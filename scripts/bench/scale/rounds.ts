import { Bench, type SharedProcesses } from '../bench.ts'
import { openFlowService } from '../flow-service.ts'
import type { Processes } from '../processes.ts'
import { median } from '../statistics.ts'
import { closedLoop } from './client.ts'
import { BASE_PATH, type Counts, type Part, type PerPart, type ScaleCluster, startScaleCluster } from './cluster.ts'
import {
  type Cost,
  costOf,
  type Held,
  measureEvents,
  measureNodes,
  measureRest,
  measureRuns,
  measureSessions,
  measureStreams,
  type Size,
} from './measures.ts'

/** The figures of one round, measured on a cluster of each form. */
export type Round = {
  rest: { cpu: PerPart; mib: PerPart }
  sessions: Held
  streams: Held
  /** By form: one gateway and worker, a second gateway, a second worker. */
  events: Record<Form, Cost>
  runs: Record<Form, Cost>
  /** With an executor and MongoDB. */
  customerRun: Cost
  flow: Cost
  executorRest: { cpu: PerPart; mib: PerPart }
}

export const FORMS = { '1 + 1': [1, 1], '2 + 1': [2, 1], '1 + 2': [1, 2] } as const
export type Form = keyof typeof FORMS

export type Rounds = { processes: Processes; size: Size; signal: AbortSignal }

/** Measures everything once, on fresh processes. */
export async function measureRound(options: Rounds): Promise<Round> {
  const { size } = options
  const events = {} as Round['events']
  const runs = {} as Round['runs']
  for (const [form, [gateways, workers]] of Object.entries(FORMS) as [Form, readonly [number, number]][]) {
    await using cluster = await startCluster({ gateways, workers }, options)
    events[form] = await measureEvents(cluster, size)
    runs[form] = await measureRuns(cluster, size)
  }
  await using held = await startCluster({ gateways: 1, workers: 1 }, options)
  const rest = await measureRest(held, size)
  const sessions = await measureSessions(held, size)
  await using waiting = await startCluster({ gateways: 1, workers: 1 }, options)
  const streams = await measureStreams(waiting, size)
  return { rest, sessions, streams, events, runs, ...(await measureStored(options)) }
}

/** By form of Redis: one server, or a Redis Cluster of so many nodes. */
export type NodesRound = Record<string, Cost & { nodes: number[] }>

const REDIS_FORMS = { 'one Redis': undefined, '1 node': 1, '2 nodes': 2, '3 nodes': 3 } as const
/** As many channels as leave no node without one, in most rounds. */
const NODES_FORM = { gateways: 4, workers: 2 }

/** Measures what a Redis Cluster costs for the same streams. */
export async function measureNodesRound(options: Rounds): Promise<NodesRound> {
  const round: NodesRound = {}
  for (const [form, redisNodes] of Object.entries(REDIS_FORMS)) {
    await using cluster = await startCluster({ ...NODES_FORM, ...(redisNodes && { redisNodes }) }, options)
    round[form] = await measureNodes(cluster, options.size)
  }
  return round
}

async function startCluster(counts: Counts, { processes, signal }: Rounds): Promise<ScaleCluster> {
  const bench = benchOf({ processes, signal })
  const { port } = await bench.provider()
  return startScaleCluster(counts, { modelUrl: `http://127.0.0.1:${port}/v1`, dataDir: processes.dir })
}

async function measureStored(options: Rounds): Promise<Pick<Round, 'customerRun' | 'flow' | 'executorRest'>> {
  const { size, processes, signal } = options
  await using cluster = await startCluster({ gateways: 1, workers: 1, executors: 1 }, options)
  const executorRest = await measureRest(cluster, size)
  const customerRun = await measureRuns(cluster, size, { customer_id: 'bench' })
  const [port = 0] = cluster.ports
  using flows = await openFlowService(
    { port, basePath: BASE_PATH },
    { bench: benchOf({ processes, signal }), counts: [0] },
  )
  const run = () => flows.run(0)
  await closedLoop(run, { callers: FLOW_CALLERS, ms: size.windowMs / 4 })
  const flow = await costOf(cluster, () => closedLoop(run, { callers: FLOW_CALLERS, ms: size.windowMs }))
  return { executorRest, customerRun, flow }
}

const FLOW_CALLERS = 8
const SHARED: SharedProcesses = new Map()

const benchOf = ({ processes, signal }: { processes: Processes; signal: AbortSignal }) =>
  new Bench({ isQuick: false, signal, processes, shared: SHARED })

/** The median over the rounds of a value for each kind of process. */
export function mediansOf(values: readonly PerPart[]): PerPart {
  const parts = Object.keys(values[0] ?? {}) as Part[]
  return Object.fromEntries(parts.map((part) => [part, median(values.map((value) => value[part] ?? 0))]))
}
