import { setTimeout as sleep } from 'node:timers/promises'
import { cpuMs, rssMiB, settledRssMiB } from '../../proc.ts'
import { median } from '../../statistics.ts'
import type { Peer } from '../peer.ts'
import type { RelayBench } from '../relay-bench.ts'
import type { Row } from '../row.ts'
import { format } from '../table.ts'
import { BARE_PATH, type Target } from '../target.ts'

const STREAMS = 10_000
const WARM_STREAMS = 200
const KEEPALIVE_MS = 15_000
const QUICK_KEEPALIVE_MS = 3_000
const WINDOWS = 5
const KIB_PER_MIB = 1024

type Held = { kib: number; cpuPercent: number; delayMs: number }

/** 10,000 idle streams in one gateway: memory of each, and CPU of their keepalives (G10, G11). */
export async function measureIdleStreams(bench: RelayBench): Promise<Row[]> {
  const keepaliveMs = bench.pick(KEEPALIVE_MS, QUICK_KEEPALIVE_MS)
  const plain = await holdPlain(bench, keepaliveMs)
  const ours = await holdOurs(bench, keepaliveMs)
  const scaled = keepaliveMs === KEEPALIVE_MS ? '' : `; scaled from keepalives every ${keepaliveMs / 1000} s`
  return [
    {
      goal: 'G10',
      what: 'memory per idle stream / node:http, 10k',
      value: ours.kib / plain.kib,
      bound: { atMost: 1.1 },
      unit: 'x',
      detail: `${format(ours.kib)} to ${format(plain.kib)} KiB`,
    },
    {
      goal: 'G11',
      what: 'CPU of 10k idle streams, in % of a core',
      value: (ours.cpuPercent * keepaliveMs) / KEEPALIVE_MS,
      bound: { atMost: 2.5 },
      unit: ' %',
      detail: `node:http with the same timer wheel ${format((plain.cpuPercent * keepaliveMs) / KEEPALIVE_MS)} %${scaled}`,
    },
    {
      goal: 'G11',
      what: 'longest loop delay / all keepalives at once',
      value: ours.delayMs / plain.burstMs,
      bound: { atMost: 1 / 20 },
      unit: 'x',
      detail: `${format(ours.delayMs)} to ${format(plain.burstMs)} ms`,
    },
  ]
}

async function holdPlain(bench: RelayBench, keepaliveMs: number): Promise<Held & { burstMs: number }> {
  await using plain = await bench.peers.start('plain-idle', { keepaliveMs })
  const held = await hold(bench, plain, { port: plain.ready.port, path: BARE_PATH }, keepaliveMs)
  const bursts: number[] = []
  for (let i = 0; i < bench.pick(5, 3); i++) {
    await plain.call('watchLoop')
    await plain.call('sendAllKeepalives')
    await sleep(1_000)
    bursts.push((await plain.call('maxLoopDelayMs')) as number)
  }
  await (await bench.load()).close()
  return { ...held, burstMs: median(bursts) }
}

async function holdOurs(bench: RelayBench, keepaliveMs: number): Promise<Held> {
  await using cluster = await bench.startRelay(keepaliveMs)
  const held = await hold(bench, cluster.gateway, cluster.target, keepaliveMs)
  await (await bench.load()).close()
  return held
}

async function hold(bench: RelayBench, server: Peer, target: Target, keepaliveMs: number): Promise<Held> {
  const load = await bench.load()
  const script = { mode: 'idle' } as const
  await load.open({ target, script, streams: WARM_STREAMS })
  await load.close()
  await sleep(500)
  const before = rssMiB(server.pid)
  await load.open({ target, script, streams: STREAMS, perSecond: bench.pick(2_000, 5_000) })
  const settling = {
    calmMs: bench.pick(1_500, 800),
    slackMiB: 1,
    maxMs: bench.pick(6_000, 2_000),
    signal: AbortSignal.timeout(60_000),
  }
  const kib = (((await settledRssMiB(server.pid, settling)) - before) * KIB_PER_MIB) / STREAMS
  const delays: number[] = []
  const cpuBefore = cpuMs(server.pid)
  await server.call('watchLoop')
  for (let window = 0; window < WINDOWS; window++) {
    await sleep(keepaliveMs / WINDOWS) // Together one keepalive interval: each stream gets one keepalive.
    delays.push((await server.call('maxLoopDelayMs')) as number)
  }
  const cpuPercent = ((cpuMs(server.pid) - cpuBefore) * 100) / keepaliveMs
  return { kib, cpuPercent, delayMs: median(delays) }
}
