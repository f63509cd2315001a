import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options?: { type: 'minor' }) => void

let collect: Collect | undefined

/**
 * Collects the garbage of this process, or of its young generation (`minor`), also where it was started without --expose-gc: with that flag
 * it could not use what other processes have compiled (NODE_COMPILE_CACHE).
 */
export const collectGarbage: Collect = (options) => {
  collect ??= openCollector()
  if (options) collect(options)
  else collect() // With `undefined` as its argument it does not free all that nothing holds.
}

function openCollector(): Collect {
  setFlagsFromString('--expose-gc')
  const gc: Collect = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return gc
}
