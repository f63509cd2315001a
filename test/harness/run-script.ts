import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Output of a finished script, stdout and stderr together. `code` is -1 when the script was killed or timed out. */
export type Finished = { code: number; printed: string }

/** Runs a program of this project to its end, for at most `withinMs`. */
export function runScript(script: URL, args: readonly string[], withinMs: number): Promise<Finished> {
  const path = fileURLToPath(script)
  return new Promise((resolve) => {
    execFile(process.execPath, [path, ...args], { timeout: withinMs }, (error, stdout, stderr) => {
      const code = error ? (typeof error.code === 'number' ? error.code : -1) : 0
      resolve({ code, printed: stdout + stderr })
    })
  })
}

/**
 * The rows of broken guarantees, without those about response times of /health: other processes on a busy machine delay
 * them, so they are checked only when the script runs alone.
 */
export const brokenRows = (printed: string): string[] =>
  printed.split('\n').filter((row) => /\bBROKEN\b/.test(row) && !/^(longest )?\/health (p99|without)/.test(row))
