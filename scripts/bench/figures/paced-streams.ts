import type { Bench } from '../bench.ts'
import { Client, type Target } from '../client.ts'
import type { Figure } from '../figure.ts'
import { once } from '../once.ts'
import { cpuMs } from '../proc.ts'
import type { Running } from '../processes.ts'
import { median, quantile } from '../statistics.ts'

const STREAMS = 200
const TOKENS = 50
const EVERY_MS = 20

/** Time until 200 streams at the pace of a model have ended, their starts included. Throws when one is not complete. */
export const pacedStreams: Figure = {
  name: 'paced-streams',
  title: `${STREAMS} streams of ${TOKENS} tokens at ${EVERY_MS} ms, total time`,
  goal: { atMost: 1.2 },
  unit: 'x',
  measure: async (bench) => compare(await measureBoth(bench), ({ totalMs }) => totalMs, ' ms'),
}

export const pacedCpu: Figure = {
  name: 'paced-cpu',
  title: 'CPU of the same',
  goal: { atMost: 1.5 },
  unit: 'x',
  measure: async (bench) => compare(await measureBoth(bench), (round) => round.cpuMs, ' ms'),
}

export const pacedFirstEvent: Figure = {
  name: 'paced-first-event',
  title: 'time to first text event of the same, p99',
  goal: { atMost: 2 },
  unit: 'x',
  measure: async (bench) => compare(await measureBoth(bench), ({ firstMs }) => quantile(firstMs, 0.99), ' ms'),
}

type Round = { totalMs: number; cpuMs: number; firstMs: number[] }
export type Rounds = Record<'baseline' | 'ours', Round[]>

const measureBoth = once(async (bench: Bench): Promise<Rounds> => {
  const [baseline, ours] = [await bench.baseline(), await bench.ours()]
  for (const gateway of [baseline, ours]) await play(gateway, bench)
  const rounds: Rounds = { baseline: [], ours: [] }
  for (let round = 0; round < bench.pick(5, 3); round += 1) {
    rounds.baseline.push(await play(baseline, bench))
    rounds.ours.push(await play(ours, bench))
  }
  return rounds
})

/** The streams of one round. The connections are new in every round, as those of users are. */
export async function play(gateway: Target & Pick<Running, 'pid'>, { signal }: Bench): Promise<Round> {
  using client = new Client(gateway, signal)
  const before = cpuMs(gateway.pid)
  const start = performance.now()
  const streams = Array.from({ length: STREAMS }, () => client.stream(TOKENS, { everyMs: EVERY_MS }))
  const firstMs = (await Promise.all(streams)).map((streamed) => streamed.firstMs)
  return { totalMs: performance.now() - start, cpuMs: cpuMs(gateway.pid) - before, firstMs }
}

/** The ratio of the medians of one number of each round. */
export function compare({ baseline, ours }: Rounds, numberOf: (round: Round) => number, unit: string) {
  const middle = { baseline: median(baseline.map(numberOf)), ours: median(ours.map(numberOf)) }
  const shown = Object.entries(middle).map(([name, value]) => `${name} ${value.toFixed(0)}${unit}`)
  return { value: middle.ours / middle.baseline, detail: shown.join(', ') }
}
