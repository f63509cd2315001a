import type { Io } from '../io.ts'

/** Keys that were pressed before a question was there, or as it appeared, were meant for something else. */
const DEAF_MS = 300

/** Waits for one of the keys, or until the signal is aborted (`undefined`). Ctrl-C is passed on as an interrupt. */
export function readKey(io: Io, keys: string, signal: AbortSignal): Promise<string | undefined> {
  const { stdin } = io
  const from = performance.now() + DEAF_MS
  return new Promise((resolve) => {
    const end = (key?: string) => {
      stdin.off('data', onData)
      signal.removeEventListener('abort', onAbort)
      stdin.setRawMode(false)
      stdin.pause()
      resolve(key)
    }
    const onAbort = () => end()
    const onData = (bytes: Buffer) => {
      for (const key of bytes.toString('utf8')) {
        if (key === '\u0003') io.interrupt()
        else if (performance.now() >= from && keys.includes(key)) return end(key)
      }
    }
    if (signal.aborted) return resolve(undefined)
    signal.addEventListener('abort', onAbort, { once: true })
    stdin.setRawMode(true)
    stdin.on('data', onData)
    stdin.resume()
  })
}
