import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** So many run without a look at the CPU. */
const SURE_LANES = 3
/** The share of the CPU time that has to be idle before another one begins. */
const LEAST_IDLE = 0.1
const SAMPLE_MS = 2_000

/**
 * Runs the items in their order, each when fewer than its `lanes` run: a slow machine runs three, since tests that wait for the CPU miss
 * their deadlines, and on a fast one the others use what is left. `idleShare` resolves with the idle share of the CPU, from 0 to 1.
 */
export async function runInLanes<Item extends { lanes: number }>(
  items: readonly Item[],
  run: (item: Item) => Promise<void>,
  idleShare: () => Promise<number> = measureIdleShare,
): Promise<void> {
  const running = new Set<Promise<void>>()
  const hasRoom = async (lanes: number): Promise<boolean> => {
    if (running.size < Math.min(lanes, SURE_LANES)) return true
    if (running.size >= lanes) {
      await Promise.race(running)
      return false
    }
    const isIdle = idleShare().then((share) => share >= LEAST_IDLE)
    return await Promise.race([isIdle, ...[...running].map((work) => work.then(() => false))])
  }
  for (const item of items) {
    while (!(await hasRoom(item.lanes)));
    const work: Promise<void> = run(item).finally(() => running.delete(work))
    running.add(work)
  }
  await Promise.all(running)
}

async function measureIdleShare(): Promise<number> {
  const before = cpuTimes()
  await sleep(SAMPLE_MS)
  const after = cpuTimes()
  return (after.idle - before.idle) / Math.max(1, after.all - before.all)
}

/** Milliseconds since the machine was started, of all cores together. What runs at a low priority, as the check does, counts as idle. */
function cpuTimes(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times)
  const sum = (values: number[]) => values.reduce((total, ms) => total + ms, 0)
  return {
    idle: sum(times.map(({ idle, nice }) => idle + nice)),
    all: sum(times.flatMap((each) => Object.values(each))),
  }
}
