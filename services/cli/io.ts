import type { ReadStream, WriteStream } from 'node:tty'

/** The process as the commands see it: `main.ts` makes it, and nothing else here uses `process`. */
export type Io = {
  /** Each stream may be a pipe or a file: `isTTY` is true for a terminal only. */
  stdin: ReadStream
  stdout: WriteStream
  stderr: WriteStream
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  /** Calls the listener for each Ctrl-C instead of ending the process. Returns a function that removes the listener. */
  onInterrupt(listener: () => void): () => void
  /** The same for a request to end (SIGTERM). */
  onTerminate(listener: () => void): () => void
  /** Calls the listener before an error that nothing catches is printed and ends the process. */
  onCrash(listener: () => void): () => void
  /** A Ctrl-C that came as a key. */
  interrupt(): void
  /** The project's folder, from which programs are started. */
  root: string
  nodePath: string
}

/** Whether the user can be asked: the questions go to stderr and the keys come from stdin. */
export const isInteractive = ({ stdin, stderr }: Io): boolean => stdin.isTTY && stderr.isTTY

/** A signal that is aborted by the first Ctrl-C or by `abort`. `release` restores the normal effect of Ctrl-C. */
export function abortOnInterrupt(io: Io): { signal: AbortSignal; abort: () => void; release: () => void } {
  const abort = new AbortController()
  const end = () => abort.abort()
  return { signal: abort.signal, abort: end, release: io.onInterrupt(end) }
}
