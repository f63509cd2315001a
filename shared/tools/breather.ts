/** How long synchronous work may block the event loop. */
const SLICE_MS = 8

export type Breather = () => Promise<void> | undefined

/**
 * Creates a function to call between pieces of synchronous work. It returns a pause to await when the time slice is used up. All works of
 * the process share the event loop: one of them goes on in each of its turns, the one that has waited longest.
 */
export function createBreather(): Breather {
  let sliceEnd = performance.now() + SLICE_MS
  const pause = async () => {
    await takeTurn()
    sliceEnd = performance.now() + SLICE_MS
  }
  return () => (performance.now() < sliceEnd ? undefined : pause())
}

const waiting: (() => void)[] = []

/** Resolves in a turn of the event loop in which no other caller goes on. Call it before a piece of work that may take a whole slice. */
export function takeTurn(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  waiting.push(resolve)
  if (waiting.length === 1) setImmediate(giveTurn)
  return promise
}

function giveTurn(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(giveTurn)
}
