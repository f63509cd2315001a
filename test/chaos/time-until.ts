import { setTimeout as sleep } from 'node:timers/promises'
import { now } from './history.ts'

const LOOK_EVERY_MS = 50

/** Milliseconds until `condition` is true, or infinity if it is not within that time: the guarantee that it is compared with is broken then. */
export async function timeUntil(condition: () => Promise<boolean>, withinMs: number): Promise<number> {
  const since = now()
  do {
    if (await condition()) return now() - since
    await sleep(LOOK_EVERY_MS)
  } while (now() - since < withinMs)
  return Number.POSITIVE_INFINITY
}
