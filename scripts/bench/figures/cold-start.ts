import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'
import type { Running } from '../processes.ts'
import { median } from '../statistics.ts'

/** Time from the spawn of a process to its first 200 on `/health`. Baseline and product alternate; the first start of each is not counted. */
export const coldStart: Figure = {
  name: 'cold-start',
  title: 'start of the process to a healthy answer',
  goal: { atMost: 2.5 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  const times = { baseline: [] as number[], ours: [] as number[] }
  for (let round = -1; round < bench.pick(11, 7); round += 1) {
    const baselineMs = await startMs(() => bench.startBaseline())
    const oursMs = await startMs(() => bench.startOurs())
    if (round < 0) continue
    times.baseline.push(baselineMs)
    times.ours.push(oursMs)
  }
  const middle = { baseline: median(times.baseline), ours: median(times.ours) }
  const detail = `baseline ${middle.baseline.toFixed(0)} ms, ours ${middle.ours.toFixed(0)} ms`
  return { value: middle.ours / middle.baseline, detail }
}

async function startMs(start: () => Promise<Running>): Promise<number> {
  await using running = await start()
  return running.startMs
}
