import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from '../../statistics.ts'
import type { Target } from '../target.ts'
import { Caller } from './caller.ts'
import type { Connect } from './connection.ts'

const TICK_MS = 1

/** Executes runs one at a time. Resolves with the median time to the first event. */
export async function oneAtATime(connect: Connect, target: Target, count: number): Promise<number> {
  const caller = new Caller(connect, target)
  const taken: number[] = []
  while (taken.length < count) taken.push(await caller.run())
  caller.close()
  return quantile(taken, 0.5)
}

/** Starts runs at a constant rate, whether or not earlier ones have ended. Resolves with the median time to the first event. */
export async function atRate(
  connect: Connect,
  target: Target,
  { perSecond, ms }: { perSecond: number; ms: number },
): Promise<number> {
  const callers: Caller[] = []
  const started: Promise<number>[] = []
  const start = performance.now()
  for (let passed = 0; passed < ms; passed = performance.now() - start) {
    while (started.length < (passed * perSecond) / 1000) {
      let caller = callers.find(({ isBusy }) => !isBusy)
      if (!caller) callers.push((caller = new Caller(connect, target)))
      started.push(caller.run())
      started.at(-1)?.catch(() => {}) // Handled by `Promise.all` below.
    }
    await sleep(TICK_MS)
  }
  const taken = await Promise.all(started)
  for (const caller of callers) caller.close()
  return quantile(taken, 0.5)
}

/** Executes runs with a number of callers, each starting its next run at the end of the one before. Resolves with runs per second. */
export async function closedLoop(
  connect: Connect,
  target: Target,
  { callers, ms }: { callers: number; ms: number },
): Promise<number> {
  let runs = 0
  const start = performance.now()
  const loop = async () => {
    const caller = new Caller(connect, target)
    while (performance.now() - start < ms) {
      await caller.run()
      runs++
    }
    caller.close()
  }
  await Promise.all(Array.from({ length: callers }, loop))
  return (runs * 1000) / (performance.now() - start)
}
