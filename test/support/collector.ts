import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Returns V8's garbage collection as a function. */
export function openCollector(): (options?: { type: 'minor' }) => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}
