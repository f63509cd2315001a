import { setTimeout as sleep } from 'node:timers/promises'
import { closedLoop, ScaleClient, times } from './client.ts'
import { each, type PerPart, type ScaleCluster } from './cluster.ts'

/** A cost of each kind of process for one unit; `perSecond` is how many units this machine did in a second. */
export type Cost = { each: PerPart; perSecond: number }

export type Size = { sessions: number; streams: number; windowMs: number }

export const FULL: Size = { sessions: 2_000, streams: 1_000, windowMs: 5_000 }
export const QUICK: Size = { sessions: 300, streams: 200, windowMs: 1_500 }

const RUN = '/agent/run'
const AT_ONCE = 16
const SETTLE_MS = 1_500
const KIB_PER_MIB = 1_024
const THOUSAND = 1_000

/** CPU of a cluster that does nothing, in milliseconds a second, and its memory in MiB. */
export async function measureRest(cluster: ScaleCluster, { windowMs }: Size): Promise<{ cpu: PerPart; mib: PerPart }> {
  const mib = cluster.rssMiB()
  const before = cluster.cpuMs()
  await sleep(windowMs)
  return { cpu: each(cluster.cpuMs(), before, windowMs / THOUSAND), mib }
}

/** Streams that each bring 20 events a second: CPU in milliseconds for 1,000 events. */
export async function measureEvents(cluster: ScaleCluster, { windowMs }: Size): Promise<Cost> {
  using client = new ScaleClient(cluster)
  const tokens = Math.ceil((windowMs + 2 * SETTLE_MS) / EVERY_MS)
  const body = { prompt: `/tokens ${tokens} ${EVERY_MS}` }
  const streams = await Promise.all(Array.from({ length: EVENT_STREAMS }, () => client.open(RUN, body)))
  await sleep(SETTLE_MS)
  const count = () => streams.reduce((sum, { events }) => sum + events, 0)
  const [from, eventsBefore, before] = [performance.now(), count(), cluster.cpuMs()]
  await sleep(windowMs)
  const [ms, events, after] = [performance.now() - from, count() - eventsBefore, cluster.cpuMs()]
  await Promise.all(streams.map(({ ended }) => ended)) // Nothing of them is left for the next measurement.
  return { each: each(after, before, events / THOUSAND), perSecond: (events * THOUSAND) / ms }
}

/** The same, and the part of each node of Redis. */
export async function measureNodes(cluster: ScaleCluster, size: Size): Promise<Cost & { nodes: number[] }> {
  const before = cluster.nodesCpuMs()
  const cost = await measureEvents(cluster, size)
  const spent = cluster.nodesCpuMs().map((ms, at) => ms - (before[at] ?? 0))
  const all = spent.reduce((sum, ms) => sum + ms, 0)
  return { ...cost, nodes: spent.map((ms) => ((cost.each.redis ?? 0) * ms) / all) }
}

const EVENT_STREAMS = 60
const EVERY_MS = 50

/** Short runs, one after the other by several callers: CPU in milliseconds for one. */
export async function measureRuns(cluster: ScaleCluster, { windowMs }: Size, more: object = {}): Promise<Cost> {
  using client = new ScaleClient(cluster)
  const run = () => client.run(RUN, { prompt: '/tokens 5', ...more })
  await closedLoop(run, { callers: CALLERS, ms: windowMs / 4 })
  return await costOf(cluster, () => closedLoop(run, { callers: CALLERS, ms: windowMs }))
}

const CALLERS = 8

/** CPU of what `work` does; it resolves with the number of units. */
export async function costOf(cluster: ScaleCluster, work: () => Promise<number>): Promise<Cost> {
  const [from, before] = [performance.now(), cluster.cpuMs()]
  const units = await work()
  return { each: each(cluster.cpuMs(), before, units), perSecond: (units * THOUSAND) / (performance.now() - from) }
}

/** The cost of one of many idle things: KiB of memory, and CPU in milliseconds a minute. */
export type Held = { kib: PerPart; cpuPerMin: PerPart }

/** Sessions with a conversation of one short exchange, in which nothing happens. */
export async function measureSessions(cluster: ScaleCluster, { sessions, windowMs }: Size): Promise<Held> {
  using client = new ScaleClient(cluster)
  const talk = async () => {
    const { session_id: id } = await client.json('/sessions', {})
    await client.run(`/sessions/${String(id)}/messages`, { prompt: '/tokens 20' })
  }
  await times(sessions / 10, AT_ONCE, talk)
  return await hold(cluster, { count: sessions, windowMs, open: () => times(sessions, AT_ONCE, talk) })
}

/** Runs whose model has not answered yet, with a client that waits for each. */
export async function measureStreams(cluster: ScaleCluster, { streams, windowMs }: Size): Promise<Held> {
  using client = new ScaleClient(cluster)
  const opened: { close(): void; ended: Promise<void> }[] = []
  const wait = async () => void opened.push(await client.open(RUN, { prompt: `/wait ${WAIT_MS}` }))
  await times(streams / 10, AT_ONCE, wait)
  const held = await hold(cluster, { count: streams, windowMs, open: () => times(streams, AT_ONCE, wait) })
  for (const stream of opened) stream.close()
  await Promise.all(opened.map(({ ended }) => ended))
  return held
}

const WAIT_MS = 600_000

type Holding = { count: number; windowMs: number; open(): Promise<void> }

async function hold(cluster: ScaleCluster, { count, windowMs, open }: Holding): Promise<Held> {
  await sleep(SETTLE_MS)
  const memory = cluster.rssMiB()
  const rest = cluster.cpuMs()
  await sleep(windowMs)
  const restCpu = each(cluster.cpuMs(), rest, 1)
  await open()
  await sleep(SETTLE_MS)
  const kib = each(cluster.rssMiB(), memory, count / KIB_PER_MIB)
  const before = cluster.cpuMs()
  await sleep(windowMs)
  const cpu = each(each(cluster.cpuMs(), before, 1), restCpu, (count * windowMs) / MS_PER_MIN)
  return { kib, cpuPerMin: cpu }
}

const MS_PER_MIN = 60_000
