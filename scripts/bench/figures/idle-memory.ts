import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'
import { settledRssMiB } from '../proc.ts'

/** Resident memory of a process that has started and answered one `/health`. */
export const idleMemory: Figure = {
  name: 'idle-memory',
  title: 'resident memory, idle',
  goal: { atMost: 90 },
  unit: ' MiB',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  await using baseline = await bench.startBaseline()
  await using ours = await bench.startOurs()
  const settling = { calmMs: bench.pick(2000, 1000), slackMiB: 0.5, maxMs: 10_000, signal: bench.signal }
  const [beside, value] = await Promise.all([baseline, ours].map(({ pid }) => settledRssMiB(pid, settling)))
  if (beside === undefined || value === undefined) throw new Error('no memory was read')
  return { value, detail: `baseline ${beside.toFixed(1)} MiB` }
}
