import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import { cpuMs } from '../proc.ts'
import type { Running } from '../processes.ts'

export const STREAMS = 50
/** The text events of a stream. */
export const tokensOf = (bench: Bench): number => bench.pick(2000, 500)
/** Time for the work that a gateway does after the last byte. */
export const AFTER_MS = 200

/** CPU time of the gateway process, with enough unpaced streams that the kernel's resolution of 10 ms does not matter. */
export const cpu: Figure = {
  name: 'cpu',
  title: 'CPU per 1,000 text events',
  goal: { atMost: 1.5 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  const baseline = await bench.baseline()
  const ours = await bench.ours()
  for (const gateway of [baseline, ours]) await cpuOfRound(gateway, bench)
  const total = { baseline: 0, ours: 0 }
  const rounds = bench.pick(4, 2)
  for (let round = 0; round < rounds; round += 1) {
    total.baseline += await cpuOfRound(baseline, bench)
    total.ours += await cpuOfRound(ours, bench)
  }
  const thousands = (rounds * STREAMS * tokensOf(bench)) / 1000
  const each = (ms: number) => `${(ms / thousands).toFixed(1)} ms`
  const detail = `baseline ${each(total.baseline)}, ours ${each(total.ours)}`
  return { value: total.ours / total.baseline, detail }
}

export async function cpuOfRound(gateway: Running, bench: Bench): Promise<number> {
  const { signal } = bench
  using client = new Client(gateway, signal)
  const before = cpuMs(gateway.pid)
  await Promise.all(Array.from({ length: STREAMS }, () => client.stream(tokensOf(bench))))
  await sleep(AFTER_MS, undefined, { signal })
  return cpuMs(gateway.pid) - before
}
