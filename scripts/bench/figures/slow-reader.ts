import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import { NeverReader } from '../never-reader.ts'
import { settledRssMiB } from '../proc.ts'
import { median } from '../statistics.ts'

const READERS = 20
/** More bytes than the kernel buffers for a connection. */
const TOKENS = 400_000
const OTHERS_TOKENS = 50
const OTHERS_WITHIN_MS = 5000
const WARM_UP = { streams: 20, tokens: 2000 }

/** Memory that the server holds for each client that starts a long run and never reads, while other clients are served. */
export const slowReader: Figure = {
  name: 'slow-reader',
  title: 'memory per client that never reads',
  goal: { atMost: 6 },
  unit: ' MiB',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  await using ours = await bench.startOurs()
  using client = new Client(ours, bench.signal)
  await Promise.all(Array.from({ length: WARM_UP.streams }, () => client.stream(WARM_UP.tokens)))
  const settling = { calmMs: bench.pick(2500, 2000), slackMiB: 1, maxMs: 15_000, signal: bench.signal }
  const before = await settledRssMiB(ours.pid, settling)

  const { port, dialect } = ours
  const request = { port, path: dialect.runPath, body: dialect.body(`/tokens ${TOKENS}`) }
  const readers = Array.from({ length: READERS }, () => new NeverReader(request))
  const measuring = new AbortController()
  const [after, times] = await Promise.all([
    settledRssMiB(ours.pid, settling).finally(() => measuring.abort()),
    runOthers(client, measuring.signal),
  ])
  await Promise.all(readers.map(({ runId }) => runId)) // Rejects when a run was refused.
  for (const reader of readers) reader.leave()

  const slowest = Math.max(...times)
  if (slowest > OTHERS_WITHIN_MS) throw new Error(`a run of another client took ${slowest.toFixed(0)} ms`)
  const served = `runs of other clients took ${median(times).toFixed(1)} ms, ${slowest.toFixed(0)} ms at most`
  const detail = `${before.toFixed(0)} to ${after.toFixed(0)} MiB with ${READERS}; ${served}`
  return { value: (after - before) / READERS, detail }
}

/** Executes runs one after the other until `over` is aborted, and returns the time of each. */
async function runOthers(client: Client, over: AbortSignal): Promise<number[]> {
  const times: number[] = []
  while (!over.aborted) times.push((await client.stream(OTHERS_TOKENS)).totalMs)
  return times
}
