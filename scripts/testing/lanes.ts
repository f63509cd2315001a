import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** Lanes that never wait for idle CPU. */
const SURE_LANES = 3
/** The share of the CPU time that has to be idle before another lane takes an item. */
const LEAST_IDLE = 0.1
const SAMPLE_MS = 2_000

/**
 * Runs the items of `waiting` in their order, at most `lanes` at a time: a slow machine runs three, since tests that wait for the CPU miss
 * their deadlines, and on a fast one the others use what is left. `idleShare` resolves with the idle share of the CPU, from 0 to 1.
 */
export async function runInLanes<Item>(
  waiting: Item[],
  lanes: number,
  run: (item: Item) => Promise<void>,
  idleShare: () => Promise<number> = measureIdleShare,
): Promise<void> {
  const runLane = async (lane: number) => {
    while (waiting.length > 0) {
      if (lane >= SURE_LANES && (await idleShare()) < LEAST_IDLE) continue
      const item = waiting.shift()
      if (item !== undefined) await run(item)
    }
  }
  await Promise.all(Array.from({ length: lanes }, (_, lane) => runLane(lane)))
}

async function measureIdleShare(): Promise<number> {
  const before = cpuTimes()
  await sleep(SAMPLE_MS)
  const after = cpuTimes()
  return (after.idle - before.idle) / Math.max(1, after.all - before.all)
}

/** Milliseconds since the machine was started, of all cores together. */
function cpuTimes(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times)
  const sum = (values: number[]) => values.reduce((total, ms) => total + ms, 0)
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.flatMap((each) => Object.values(each))) }
}
