import type { ReadStream, WriteStream } from 'node:tty'

/** The process as the commands see it: `main.ts` makes it, and nothing else here uses `process`. */
export type Io = {
  /** Each of them may be a pipe or a file: `isTTY` is true for a terminal only. */
  stdin: ReadStream
  stdout: WriteStream
  stderr: WriteStream
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  /** Calls the listener for each Ctrl-C instead of ending the process. Returns a function that stops that. */
  onInterrupt(listener: () => void): () => void
  /** The same for a request to end (SIGTERM). */
  onTerminate(listener: () => void): () => void
  /** Calls the listener before an error that nothing catches is printed and ends the process. */
  onCrash(listener: () => void): () => void
  /** A Ctrl-C that came as a key. */
  interrupt(): void
  /** The project's folder, for what is started from there. */
  root: string
  nodePath: string
}

/** A person can be asked: the questions go to stderr and the keys come from stdin. */
export const isInteractive = ({ stdin, stderr }: Io): boolean => stdin.isTTY && stderr.isTTY

/** A signal that the first Ctrl-C aborts, or `abort`. `release` gives Ctrl-C back. */
export function abortOnInterrupt(io: Io): { signal: AbortSignal; abort: () => void; release: () => void } {
  const abort = new AbortController()
  const end = () => abort.abort()
  return { signal: abort.signal, abort: end, release: io.onInterrupt(end) }
}
