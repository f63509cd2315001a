import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import { rssMiB } from '../proc.ts'
import type { Running } from '../processes.ts'

const SHORT = { runs: 12_000, atOnce: 64, tokens: 5 }
const PACED = { streams: 200, tokens: 50, everyMs: 20, rounds: 2 }

/**
 * Resident memory of a process after short runs and streams at the pace of a model. The ended runs can still be followed, as long as
 * RUN_RESUME_SECS says.
 */
export const loadedMemory: Figure = {
  name: 'loaded-memory',
  title: `resident memory after ${SHORT.runs} short runs and paced streams`,
  goal: { atMost: 297 },
  unit: ' MiB',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  await using baseline = await bench.startBaseline()
  await using ours = await bench.startOurs('data-loaded')
  for (const gateway of [baseline, ours]) await load(gateway, bench)
  return { value: rssMiB(ours.pid), detail: `baseline ${rssMiB(baseline.pid).toFixed(1)} MiB` }
}

async function load(gateway: Running, bench: Bench): Promise<void> {
  using client = new Client(gateway, bench.signal)
  let left = bench.pick(SHORT.runs, SHORT.runs / 2)
  const runShort = async () => {
    while (left-- > 0) await client.stream(SHORT.tokens)
  }
  await Promise.all(Array.from({ length: SHORT.atOnce }, runShort))
  for (let round = 0; round < PACED.rounds; round += 1) {
    await Promise.all(Array.from({ length: PACED.streams }, () => client.stream(PACED.tokens, PACED)))
  }
}
