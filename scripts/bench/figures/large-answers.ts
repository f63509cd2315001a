import { once as onceEmitted } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Bench } from '../bench.ts'
import { GATEWAY } from '../dialect.ts'
import type { Figure, Measured } from '../figure.ts'
import { type Form, type Product, startForm } from '../form.ts'
import { HealthProber } from '../health-prober.ts'
import { NeverReader } from '../never-reader.ts'
import { once } from '../once.ts'
import { rssMiB, settledRssMiB } from '../proc.ts'
import { quantile } from '../statistics.ts'

const ANSWERS = 100
const DELTAS = 48
const DELTA_KIB = 64
const ANSWERS_MIB = (ANSWERS * DELTAS * DELTA_KIB) / 1024
/** Holds the last event. */
const TAIL_BYTES = 300
const SAMPLE_EVERY_MS = 20
/** The runs of clients that do not read have stopped when the memory has not moved for so long. */
const SETTLED = { calmMs: 2_000, slackMiB: 2, maxMs: 15_000 }

/** The cost of 100 answers of 3 MiB under way at once: of one process, and of gateway, worker and Redis together. */
export const largeAnswers: readonly Figure[] = (['standalone', 'cluster'] as const).flatMap((form) => {
  const name = form === 'standalone' ? 'large-answers' : 'large-answers-cluster'
  const title = `${ANSWERS} answers of ${(DELTAS * DELTA_KIB) / 1024} MiB, ${form}:`
  const rowOf = (row: Pick<Figure, 'name' | 'title' | 'goal' | 'unit'>, value: (costs: Costs) => number): Figure => ({
    ...row,
    measure: async (bench) => worstOf(await measureBoth[form](bench), value),
  })
  return [
    rowOf({ name, title: `${title} resident bytes per byte`, goal: { atMost: 2 }, unit: 'x' }, (costs) => costs.ratio),
    rowOf(
      { name: `${name}-health`, title: `${title} /health p99`, goal: { atMost: 100 }, unit: ' ms' },
      (costs) => costs.p99,
    ),
    rowOf(
      { name: `${name}-stall`, title: `${title} /health at most`, goal: { atMost: 500 }, unit: ' ms' },
      (costs) => costs.longest,
    ),
  ]
})

type Costs = { ratio: number; p99: number; longest: number; detail: string }
type Both = { read: Costs; unread: Costs }

/** The figures of one form are three values of the same measurement. */
const measureBoth: Record<Form, (bench: Bench) => Promise<Both>> = {
  standalone: once((bench) => measureForm(bench, 'standalone')),
  cluster: once((bench) => measureForm(bench, 'cluster')),
}

async function measureForm(bench: Bench, form: Form): Promise<Both> {
  const measureOne = async (serve: Serve) => {
    await using product = await startForm(bench, form)
    return await measureCosts(bench, product, serve) // Before the product is stopped.
  }
  return { read: await measureOne(readAll), unread: await measureOne(leaveUnread) }
}

function worstOf({ read, unread }: Both, value: (costs: Costs) => number): Measured {
  const show = (costs: Costs) => `${value(costs).toFixed(value(costs) < 10 ? 2 : 0)} (${costs.detail})`
  const detail = `read ${show(read)}, unread ${show(unread)}`
  return { value: Math.max(value(read), value(unread)), detail }
}

type Serve = (product: Product, bench: Bench) => Promise<void>

async function measureCosts(bench: Bench, product: Product, serve: Serve): Promise<Costs> {
  const { port, basePath, pids } = product
  await Promise.all(Array.from({ length: 20 }, () => readOne(product, '/tokens 2000')))
  const before = sumMiB(pids)
  let peak = before
  const health = new HealthProber(port, { path: `${basePath}/health` })
  await health.ready
  const sampling = setInterval(() => {
    peak = Math.max(peak, sumMiB(pids))
  }, SAMPLE_EVERY_MS)
  const start = performance.now()
  await serve(product, bench).finally(() => clearInterval(sampling))
  const secs = (performance.now() - start) / 1000
  const { times, failures } = await health.stop()
  if (failures > 0) throw new Error(`${failures} requests for /health were not answered`)
  const detail = `${before.toFixed(0)} to ${peak.toFixed(0)} MiB in ${secs.toFixed(1)} s`
  return { ratio: (peak - before) / ANSWERS_MIB, p99: quantile(times, 0.99), longest: Math.max(...times), detail }
}

const sumMiB = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + rssMiB(pid), 0)

const PROMPT = `/blocks ${DELTAS} ${DELTA_KIB}`

async function readAll(product: Product): Promise<void> {
  await Promise.all(Array.from({ length: ANSWERS }, () => readOne(product, PROMPT)))
}

async function readOne({ port, basePath }: Product, prompt: string): Promise<void> {
  const body = GATEWAY.body(prompt)
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const req = request({ port, path: `${basePath}/agent/run`, method: 'POST', headers, agent: false })
  req.end(body)
  const [res]: IncomingMessage[] = await onceEmitted(req, 'response')
  let tail = ''
  res?.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.subarray(-TAIL_BYTES).toString('latin1')).slice(-TAIL_BYTES)
  })
  await onceEmitted(req, 'close')
  if (!tail.includes(GATEWAY.end)) throw new Error(`an answer was not complete: ${tail}`)
}

/** Waits until the memory has settled, as the runs have stopped or ended. */
async function leaveUnread({ port, basePath, pids }: Product, { signal }: Bench): Promise<void> {
  const run = { port, path: `${basePath}/agent/run`, body: GATEWAY.body(PROMPT) }
  const readers = Array.from({ length: ANSWERS }, () => new NeverReader(run))
  await Promise.all(readers.map(({ runId }) => runId))
  await Promise.all(pids.map((pid) => settledRssMiB(pid, { ...SETTLED, signal })))
  for (const reader of readers) reader.leave()
}
