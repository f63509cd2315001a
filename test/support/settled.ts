import { setImmediate as nextLoopTurn } from 'node:timers/promises'

const TURNS = 50

/**
 * Lets everything happen that this process can do by itself, without a timer, a socket or another thread. For what must not happen, since
 * that has no event to wait for.
 */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await nextLoopTurn()
}
