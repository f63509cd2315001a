import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { align } from '../align.ts'
import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import type { Counts } from '../ladder/counts.ts'
import { threadsCpuMs } from '../proc.ts'
import type { Running } from '../processes.ts'

/**
 * Where the cost of a run comes from: the bare gateway, then the product's parts, one more in each step. CPU is the least of the rounds, in which the
 * steps take turns; the rest is counted in processes of their own, in which no time is measured.
 */
export const ladder: Figure = {
  name: 'ladder',
  title: 'CPU of a short run, the least round: the product beside the bare gateway; prints the steps between them',
  goal: { atMost: 1.7 },
  unit: 'x',
  measure,
}

type Start = (bench: Bench, env: Record<string, string>) => Promise<Running>

const part =
  (STEP: string): Start =>
  (bench, env) =>
    bench.startStep({ ...env, STEP })

const product =
  (folder: string, own: Record<string, string> = {}): Start =>
  (bench, env) =>
    bench.startOurs(`data-ladder-${folder}${env['COUNTS'] === undefined ? '' : '-counted'}`, { ...own, ...env })

const STEPS: Readonly<Record<string, Start>> = {
  'bare gateway': (bench, env) => bench.startBaseline(env),
  '+ HTTP, journal and stream': part('http'),
  '+ the provider, read and parsed': part('provider'),
  '+ engine': part('engine'),
  '+ runs of a worker': part('runs'),
  '+ tools, limits, records, usage, events': product('records'),
  '+ traces': product('traces', {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  }),
}
/** The step of the product as it is installed. */
const PRODUCT = '+ tools, limits, records, usage, events'

const AT_ONCE = 64
const TOKENS = 20
const PACED = { streams: 100, tokens: 50, everyMs: 20 }
/** Time for the work behind the last byte. */
const AFTER_MS = 300

type Step = { name: string; timed: Running; runMs: number[]; pacedMs: number[] }

async function measure(bench: Bench): Promise<Measured> {
  await using stack = new AsyncDisposableStack()
  const steps: Step[] = []
  for (const [name, start] of Object.entries(STEPS))
    steps.push({ name, timed: stack.use(await start(bench, {})), runMs: [], pacedMs: [] })
  const runs = bench.pick(1_280, 640)
  for (const { timed } of steps) await cpuOf(timed, bench, () => shortRuns(timed, bench, 2 * runs))
  for (let round = 0; round < bench.pick(6, 3); round += 1)
    for (const { timed, runMs, pacedMs } of steps) {
      runMs.push((await cpuOf(timed, bench, () => shortRuns(timed, bench, runs))) / runs)
      pacedMs.push((await cpuOf(timed, bench, () => pacedStreams(timed, bench))) / THOUSANDS)
    }
  const rows = []
  for (const step of steps) rows.push(rowOf(step, await countOf(step.name, bench)))
  process.stdout.write(`\n${align([HEAD, ...rows])}\n\n`)
  const least = (name: string) => Math.min(...(steps.find((step) => step.name === name)?.runMs ?? []))
  const [bare, ours] = [least('bare gateway'), least(PRODUCT)]
  return { value: ours / bare, detail: `bare ${bare.toFixed(2)} ms, ours ${ours.toFixed(2)} ms` }
}

const THOUSANDS = (PACED.streams * PACED.tokens) / 1_000
const HEAD = [
  ...['', 'ms a run', 'ms per 1,000 paced events', 'promises a run', 'KiB a run', 'system calls a run'],
  ...['promises an event', 'KiB an event'],
]

const rowOf = ({ name, runMs, pacedMs }: Step, { ofRun, ofEvent, calls }: Counted): string[] => [
  name,
  Math.min(...runMs).toFixed(2),
  Math.min(...pacedMs).toFixed(0),
  ofRun.promises.toFixed(0),
  (ofRun.bytes / 1_024).toFixed(0),
  calls === undefined ? '-' : calls.toFixed(0),
  ofEvent.promises.toFixed(1),
  (ofEvent.bytes / 1_024).toFixed(1),
]

async function cpuOf(running: Running, bench: Bench, work: () => Promise<void>): Promise<number> {
  const before = threadsCpuMs(running.pid)
  await work()
  await sleep(AFTER_MS, undefined, { signal: bench.signal })
  return threadsCpuMs(running.pid) - before
}

async function shortRuns(target: Running, { signal }: Bench, count: number): Promise<void> {
  using client = new Client(target, signal)
  const work = async () => {
    for (let left = count / AT_ONCE; left > 0; left -= 1) await client.stream(TOKENS)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

async function pacedStreams(target: Running, { signal }: Bench): Promise<void> {
  using client = new Client(target, signal)
  const { streams, tokens, everyMs } = PACED
  await Promise.all(Array.from({ length: streams }, () => client.stream(tokens, { everyMs })))
}

/** One event at a time, so that each is read and written by itself. */
async function oneStream(target: Running, { signal }: Bench): Promise<void> {
  using client = new Client(target, signal)
  await client.stream(COUNTED_EVENTS, { everyMs: 3 })
}

type Counted = { ofRun: Counts; ofEvent: Counts; calls: number | undefined }

const COUNTED_RUNS = 640
const COUNTED_EVENTS = 1_500

async function countOf(name: string, bench: Bench): Promise<Counted> {
  const dir = mkdtempSync(join(tmpdir(), 'agent-engine-ladder-'))
  const file = join(dir, 'counts.json')
  const preload = `--import ${new URL('../ladder/counts.ts', import.meta.url).pathname}`
  await using counted = await STEPS[name]?.(bench, { NODE_OPTIONS: preload, COUNTS: file })
  if (!counted) throw new Error(`no step ${name}`)
  const runs = () => cpuOf(counted, bench, () => shortRuns(counted, bench, COUNTED_RUNS))
  const events = () => cpuOf(counted, bench, () => oneStream(counted, bench))
  const count = async (work: () => Promise<unknown>) => {
    await work()
    return readCounts(counted, file)
  }
  await runs()
  await count(events)
  const [{ bytes: ofRuns }, { bytes: ofEvents }] = [await count(runs), await count(events)]
  const [inRuns, inEvents] = [await count(runs), await count(events)]
  const calls = await systemCalls(counted.pid, runs)
  rmSync(dir, { recursive: true })
  return {
    ofRun: { promises: inRuns.promises / COUNTED_RUNS, bytes: ofRuns / COUNTED_RUNS },
    ofEvent: { promises: inEvents.promises / COUNTED_EVENTS, bytes: ofEvents / COUNTED_EVENTS },
    calls: calls && calls / COUNTED_RUNS,
  }
}

async function readCounts({ pid }: Running, file: string): Promise<Counts> {
  rmSync(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  while (!existsSync(file)) await sleep(5)
  return JSON.parse(readFileSync(file, 'utf8')) as Counts
}

/** Counts the system calls of a process with strace; `undefined` where that is not installed, or may not look at other processes. */
async function systemCalls(pid: number, work: () => Promise<unknown>): Promise<number | undefined> {
  const strace = spawn('strace', ['-c', '-f', '-p', String(pid)], { stdio: ['ignore', 'ignore', 'pipe'] })
  const failed = new Promise<string>((resolve) => strace.once('error', () => resolve('')))
  const report = Promise.race([text(strace.stderr), failed])
  await work()
  strace.kill('SIGINT')
  const total = /^100\.00\s+\S+\s+(?:\d+\s+)?(\d+)\s+(?:\d+\s+)?total$/m.exec(await report)?.[1]
  return total === undefined ? undefined : Number(total)
}
