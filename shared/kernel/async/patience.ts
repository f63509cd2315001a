import { AsyncLocalStorage } from 'node:async_hooks'

const callersUntil = new AsyncLocalStorage<number>()

/** Carries out `work`, and all that it starts, for a caller who waits for the answer so long. Clocks differ, so callers in other processes say how long, not until when. */
export const answeringWithin = <T>(ms: number, work: () => T): T => callersUntil.run(performance.now() + ms, work)

/** For how much longer the caller waits for the answer of the running code; `Infinity` where nobody has said it. */
export const callersPatienceMs = (): number => (callersUntil.getStore() ?? Infinity) - performance.now()
