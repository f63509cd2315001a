import { setImmediate } from 'node:timers/promises'

/** After this long the event loop gets its turn. */
const SLICE_MS = 8

export type Breather = () => Promise<void> | undefined

/** To be called between pieces of synchronous work: gives a pause to await whenever the time slice is over. */
export function createBreather(): Breather {
  let sliceEnd = performance.now() + SLICE_MS
  const pause = async () => {
    await setImmediate()
    sliceEnd = performance.now() + SLICE_MS
  }
  return () => (performance.now() < sliceEnd ? undefined : pause())
}
