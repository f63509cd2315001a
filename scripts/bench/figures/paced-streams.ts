import type { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import type { Figure, Measured } from '../figure.ts'
import { cpuMs } from '../proc.ts'
import type { Running } from '../processes.ts'
import { median } from '../statistics.ts'

const STREAMS = 200
const TOKENS = 50
const EVERY_MS = 20

/** Time until 200 streams at the pace of a model have ended. Throws when one is not complete. */
export const pacedStreams: Figure = {
  name: 'paced-streams',
  title: `${STREAMS} streams of ${TOKENS} tokens at ${EVERY_MS} ms, total time`,
  goal: { atMost: 1.2 },
  unit: 'x',
  measure,
}

type Round = { totalMs: number; cpuMs: number }

async function measure(bench: Bench): Promise<Measured> {
  const [baseline, ours] = [await bench.baseline(), await bench.ours()]
  for (const gateway of [baseline, ours]) await play(gateway, bench)
  const rounds = { baseline: [] as Round[], ours: [] as Round[] }
  for (let round = 0; round < bench.pick(5, 3); round += 1) {
    rounds.baseline.push(await play(baseline, bench))
    rounds.ours.push(await play(ours, bench))
  }
  const middle = { baseline: middleOf(rounds.baseline), ours: middleOf(rounds.ours) }
  const shown = Object.entries(middle).map(
    ([name, { totalMs, cpuMs: used }]) => `${name} ${totalMs.toFixed(0)} ms with ${used.toFixed(0)} ms of CPU`,
  )
  return { value: middle.ours.totalMs / middle.baseline.totalMs, detail: shown.join(', ') }
}

async function play(gateway: Running, { signal }: Bench): Promise<Round> {
  using client = new Client(gateway, signal)
  const before = cpuMs(gateway.pid)
  const start = performance.now()
  await Promise.all(Array.from({ length: STREAMS }, () => client.stream(TOKENS, { everyMs: EVERY_MS })))
  return { totalMs: performance.now() - start, cpuMs: cpuMs(gateway.pid) - before }
}

const middleOf = (rounds: Round[]): Round => ({
  totalMs: median(rounds.map(({ totalMs }) => totalMs)),
  cpuMs: median(rounds.map((round) => round.cpuMs)),
})
