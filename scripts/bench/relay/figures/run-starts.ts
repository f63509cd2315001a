import { median } from '../../statistics.ts'
import type { RelayBench } from '../relay-bench.ts'
import type { Row } from '../row.ts'
import { format } from '../table.ts'
import { BARE_PATH } from '../target.ts'

const CALLERS = 32

/** Short runs per second, each started at the end of another: through the relay and in the same code without it (G9). */
export async function measureRunStarts(bench: RelayBench): Promise<Row[]> {
  const load = await bench.load()
  const how = { callers: CALLERS, ms: bench.pick(1_500, 600) }
  const targets = [await bench.directTarget(), (await bench.relay()).target, await bench.directTarget(BARE_PATH)]
  for (const target of targets) await load.closedLoop(target, how)
  const rates: number[][] = [[], [], []]
  for (let round = 0; round < bench.pick(5, 2); round++) {
    for (const [at, target] of targets.entries()) rates[at]?.push(await load.closedLoop(target, how))
  }
  const [direct = [], relayed = [], bare = []] = rates
  const value = median(relayed.map((rate, round) => rate / (direct[round] ?? rate)))
  const [a, b, c] = [relayed, direct, bare].map((each) => format(median(each)))
  const detail = `${a} to ${b} runs/s; plain express ${c}`
  return [{ goal: 'G9', what: 'run starts / direct, closed loop', value, bound: { atLeast: 0.5 }, unit: 'x', detail }]
}
