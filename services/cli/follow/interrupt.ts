import type { Io } from '../io.ts'

/** A signal that the first Ctrl-C aborts. `release` gives Ctrl-C back. */
export function abortOnInterrupt(io: Io): { signal: AbortSignal; release: () => void } {
  const abort = new AbortController()
  return { signal: abort.signal, release: io.onInterrupt(() => abort.abort()) }
}
