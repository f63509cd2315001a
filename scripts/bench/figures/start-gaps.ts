import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Bench } from '../bench.ts'
import { Client, type Target } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import type { Starts } from '../programs/starts.ts'
import { median, quantile } from '../statistics.ts'

const STREAMS = 50
const EVERY_MS = 20
/** The time of the streams: the starts come after the first part of it. */
const TOKENS = 250
const SETTLED_MS = 1_500
const STARTED_TOKENS = 3

/** How long the streams that run wait for their next event while so many runs are started at once, beside the least gateway. */
export const startGaps: Figure[] = [200, 1_000].map((starts) => ({
  name: `start-gaps-${starts}`,
  title: `gap between two events of ${STREAMS} streams while ${starts} runs start, p99`,
  goal: { atMost: 1.3 },
  unit: 'x',
  measure: (bench) => measure(bench, starts),
}))

type Round = { gap: number; longest: number; first: number }

async function measure(bench: Bench, starts: number): Promise<Measured> {
  const gateways = { baseline: await bench.baseline(), ours: await bench.ours() }
  const rounds: Record<keyof typeof gateways, Round[]> = { baseline: [], ours: [] }
  for (let round = -1; round < bench.pick(5, 2); round += 1)
    for (const name of ['baseline', 'ours'] as const) {
      const measured = await play(gateways[name], starts, bench.signal)
      if (round >= 0) rounds[name].push(measured)
    }
  const middle = (name: keyof typeof gateways, of: keyof Round) => median(rounds[name].map((each) => each[of]))
  const shown = (name: keyof typeof gateways) =>
    `${name} p99 ${middle(name, 'gap').toFixed(0)} ms, longest ${middle(name, 'longest').toFixed(0)} ms, first event of a start p50 ${middle(name, 'first').toFixed(0)} ms`
  return { value: middle('ours', 'gap') / middle('baseline', 'gap'), detail: `${shown('baseline')}; ${shown('ours')}` }
}

/** The gaps are those of the time in which the starts are served. */
async function play({ port, dialect }: Target, starts: number, signal: AbortSignal): Promise<Round> {
  const data: Starts = { port, tokens: STARTED_TOKENS }
  const starter = new Worker(new URL('../programs/starts.ts', import.meta.url), { workerData: data })
  await once(starter, 'online')
  using client = new Client({ port, dialect }, signal)
  const gaps: [atMs: number, ms: number][] = []
  const onGap = (ms: number) => gaps.push([performance.now(), ms])
  const streams = Array.from({ length: STREAMS }, () => client.stream(TOKENS, { everyMs: EVERY_MS, onGap }))
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS))
  const from = performance.now()
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  starter.postMessage(starts)
  const [firstMs] = (await once(starter, 'message', { signal })) as [number[]]
  const until = performance.now()
  await Promise.all(streams)
  await starter.terminate()
  const during = gaps.filter(([at]) => at >= from && at <= until).map(([, ms]) => ms)
  return { gap: quantile(during, 0.99), longest: Math.max(...during), first: median(firstMs) }
}
