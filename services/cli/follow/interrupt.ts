import type { Io } from '../io.ts'

/** A signal that the first Ctrl-C aborts, or `abort`. `release` gives Ctrl-C back. */
export function abortOnInterrupt(io: Io): { signal: AbortSignal; abort: () => void; release: () => void } {
  const abort = new AbortController()
  const end = () => abort.abort()
  return { signal: abort.signal, abort: end, release: io.onInterrupt(end) }
}
