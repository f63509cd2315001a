import { setTimeout as sleep } from 'node:timers/promises'
import { idOf } from '../../../shared/tenancy/events/event-text.ts'
import { coreWaitMs, cpuMs, machineCpuMs } from '../proc.ts'
import type { Peer, Peers } from '../relay/peer.ts'
import type { ScaleClient } from '../scale/client.ts'
import type { ScaleCluster } from '../scale/cluster.ts'
import type { ReadersReport } from './event-readers.ts'
import type { RedisView } from './redis-view.ts'

/** `readers` are spread over the gateways. Runs are started at this rate, whether or not earlier ones have ended. */
export type Load = { readers: number; runsPerSecond: number; windowMs: number }

export type Measured = {
  readers: number
  /** Events that the runs of the bench have written, with those of the warm-up, and how many they should be. */
  events: number
  expected: number
  /** Seconds of CPU a second, by the name of the process. */
  cpu: ReadonlyMap<string, number>
  /** The same of what does not belong to the bench, the hypervisor included. */
  foreignCpu: number
  /** Seconds of a second in which the process that waited most for a core did so. It delays the events, and is no work of the product. */
  coreWait: number
  commandsPerSec: number
  readsPerSec: number
  /** Redis connections that receive the tenant's events. */
  subscribers: number
  /** Readers that have not received each event once and in order. */
  faulty: number
  /** Milliseconds from the writing of an event to its arrival at each reader. */
  delays: readonly number[]
}

export type Parts = {
  cluster: ScaleCluster
  client: ScaleClient
  redis: RedisView
  peers: Peers
  provider: { pid: number }
}

const WARM_UP_MS = 3_000
const EVENTS_OF_A_RUN = 2
const ARRIVE_WITHIN_MS = 10_000
const LOOK_EVERY_MS = 20
const MS_PER_SEC = 1_000

/** Opens readers, starts runs, and measures what the events of these runs cost and how long they take to all readers. */
export async function measure(parts: Parts, load: Load): Promise<Measured> {
  const { cluster, client, redis } = parts
  await using started = new AsyncDisposableStack()
  const before = await redis.end()
  const readers = await openReaders(parts, load.readers, started)
  const warmUp = await produce(client, { ...load, windowMs: WARM_UP_MS })
  const subscribers = await redis.subscribers()
  const watched = new Map([...namesOf(cluster), ...readers, ['provider', parts.provider], ['bench', process]])
  const [from, counts, cpuOf] = [Date.now(), await redis.counts(), watchCpu(watched)]
  const [since, runs] = [performance.now(), await produce(client, load)]
  const [to, secs, cpu] = [Date.now(), (performance.now() - since) / MS_PER_SEC, cpuOf()]
  const countsAfter = await redis.counts()
  const expected = (warmUp + runs) * EVENTS_OF_A_RUN
  const last = await endOfLog(redis, before.n + expected)
  const order = { from, to, last: idOf(last), withinMs: ARRIVE_WITHIN_MS }
  const calls = [...readers.values()].map((peer) => peer.call('report', order))
  const reports = (await Promise.all(calls)) as ReadersReport[]
  return {
    readers: load.readers,
    events: last.n - before.n,
    expected,
    ...cpu,
    commandsPerSec: (countsAfter.commands - counts.commands) / secs,
    readsPerSec: (countsAfter.reads - counts.reads) / secs,
    subscribers,
    faulty: reports.reduce((sum, { faulty }) => sum + faulty, 0),
    delays: reports.flatMap(({ delays }) => delays),
  }
}

type Cpu = Pick<Measured, 'cpu' | 'foreignCpu' | 'coreWait'>

/** Starts measuring the CPU of these processes. */
function watchCpu(processes: ReadonlyMap<string, { pid: number }>): () => Cpu {
  const readAll = (read: (pid: number) => number) => new Map([...processes].map(([name, { pid }]) => [name, read(pid)]))
  const [since, machine, cpus, waits] = [performance.now(), machineCpuMs(), readAll(cpuMs), readAll(coreWaitMs)]
  return () => {
    const ms = performance.now() - since
    const perMs = (after: Map<string, number>, before: Map<string, number>) =>
      new Map([...after].map(([name, value]) => [name, (value - (before.get(name) ?? 0)) / ms]))
    const [cpu, wait] = [perMs(readAll(cpuMs), cpus), perMs(readAll(coreWaitMs), waits)]
    const own = [...cpu.values()].reduce((sum, each) => sum + each, 0)
    return {
      cpu,
      foreignCpu: Math.max(0, (machineCpuMs() - machine) / ms - own),
      coreWait: Math.max(...wait.values()),
    }
  }
}

/** Starts one process for the readers of each gateway. They end with `started`. */
async function openReaders(
  { cluster, redis, peers }: Parts,
  count: number,
  started: AsyncDisposableStack,
): Promise<Map<string, Peer>> {
  const after = await redis.end()
  const readers = new Map<string, Peer>()
  for (const [i, port] of cluster.ports.entries()) {
    const share = Math.ceil((count - i) / cluster.ports.length)
    if (share <= 0) continue
    const peer = started.use(await peers.start('event-readers'))
    await peer.call('open', { port, count: share, after })
    readers.set(`readers ${i + 1}`, peer)
  }
  return readers
}

/** Resolves with how many runs were started, when all have ended. Throws when one of them fails. */
async function produce(client: ScaleClient, { runsPerSecond, windowMs }: Load): Promise<number> {
  const everyMs = MS_PER_SEC / runsPerSecond
  const count = Math.floor(windowMs / everyMs)
  const start = performance.now()
  const runs = Array.from({ length: count }, async (_, i) => {
    await sleep(Math.max(0, start + i * everyMs - performance.now()))
    await client.run('/agent/run', { prompt: '/tokens 5' })
  })
  await Promise.all([...runs, sleep(windowMs)])
  return count
}

/** The end of the log when it has so many events, or what it is after a time: a worker writes an event soon after the run's end. */
async function endOfLog(redis: RedisView, n: number) {
  const deadline = performance.now() + ARRIVE_WITHIN_MS
  let end = await redis.end()
  while (end.n < n && performance.now() < deadline) {
    await sleep(LOOK_EVERY_MS)
    end = await redis.end()
  }
  return end
}

/** The processes of the cluster, numbered where there are several of a kind. */
function namesOf({ processes }: ScaleCluster): [string, { pid: number }][] {
  const kinds = Map.groupBy(processes, ({ part }) => part)
  return [...kinds].flatMap(([part, all]) =>
    all.map((each, i): [string, { pid: number }] => [all.length > 1 ? `${part} ${i + 1}` : part, each]),
  )
}
