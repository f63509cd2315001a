import type { Bench } from '../bench.ts'
import type { Figure } from '../figure.ts'
import { once } from '../once.ts'
import type { Running } from '../processes.ts'
import { median } from '../statistics.ts'

/** Time from the spawn of a process to its first 200 on `/health`. Baseline and product alternate; the first start of each is not counted. */
export const coldStart: Figure = {
  name: 'cold-start',
  title: 'start of the process to a healthy answer',
  goal: { atMost: 2.5 },
  unit: 'x',
  async measure(bench) {
    const { baseline, ours } = await measureBoth(bench)
    return { value: ours / baseline, detail: `baseline ${baseline.toFixed(0)} ms, ours ${ours.toFixed(0)} ms` }
  },
}

/** The same as a time, for a machine of two cores with 2.5 GHz that does nothing else. */
export const coldStartTime: Figure = {
  name: 'cold-start-time',
  title: 'the same as a time',
  goal: { atMost: 240 },
  unit: ' ms',
  async measure(bench) {
    const { baseline, ours } = await measureBoth(bench)
    return { value: ours, detail: `baseline ${baseline.toFixed(0)} ms` }
  },
}

const measureBoth = once(async (bench: Bench): Promise<Record<'baseline' | 'ours', number>> => {
  const times = { baseline: [] as number[], ours: [] as number[] }
  for (let round = -1; round < bench.pick(11, 7); round += 1) {
    const baselineMs = await startMs(() => bench.startBaseline())
    const oursMs = await startMs(() => bench.startOurs())
    if (round < 0) continue
    times.baseline.push(baselineMs)
    times.ours.push(oursMs)
  }
  return { baseline: median(times.baseline), ours: median(times.ours) }
})

async function startMs(start: () => Promise<Running>): Promise<number> {
  await using running = await start()
  return running.startMs
}
