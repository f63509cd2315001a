import { setImmediate } from 'node:timers/promises'

/** How long synchronous work may block the event loop. */
const SLICE_MS = 8

export type Breather = () => Promise<void> | undefined

/** Creates a function to call between pieces of synchronous work. It returns a pause to await when the time slice is used up. */
export function createBreather(): Breather {
  let sliceEnd = performance.now() + SLICE_MS
  const pause = async () => {
    await setImmediate()
    sliceEnd = performance.now() + SLICE_MS
  }
  return () => (performance.now() < sliceEnd ? undefined : pause())
}
