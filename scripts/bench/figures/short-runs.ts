import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import { median } from '../statistics.ts'

const CONCURRENCY = 64
const TOKENS = 5

/** Short runs per second, 64 at a time. Baseline and product alternate. */
export const shortRuns: Figure = {
  name: 'short-runs',
  title: `short runs per second, ${CONCURRENCY} at a time`,
  goal: { atLeast: 0.5 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  using baseline = new Client(await bench.baseline(), bench.signal)
  using ours = new Client(await bench.ours(), bench.signal)
  const roundMs = bench.pick(2000, 1000)
  for (const client of [baseline, ours]) await perSecond(client, roundMs)
  const rates = { baseline: [] as number[], ours: [] as number[] }
  for (let round = 0; round < bench.pick(5, 3); round += 1) {
    rates.baseline.push(await perSecond(baseline, roundMs))
    rates.ours.push(await perSecond(ours, roundMs))
  }
  const middle = { baseline: median(rates.baseline), ours: median(rates.ours) }
  const detail = `baseline ${middle.baseline.toFixed(0)}/s, ours ${middle.ours.toFixed(0)}/s`
  return { value: middle.ours / middle.baseline, detail }
}

async function perSecond(client: Client, roundMs: number): Promise<number> {
  const start = performance.now()
  let runs = 0
  const work = async () => {
    while (performance.now() - start < roundMs) {
      await client.stream(TOKENS)
      runs += 1
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  return runs / ((performance.now() - start) / 1000)
}
