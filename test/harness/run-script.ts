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
 * The rows of broken guarantees, without those that depend on the speed of the machine: response times of /health, which other
 * processes delay, and the longest stall, which may be a garbage collection. They are checked when the script runs alone. A request
 * that causes a stall is a finding.
 */
export const brokenRows = (printed: string): string[] =>
  printed
    .split('\n')
    .filter(
      (row) => /\bBROKEN\b/.test(row) && !/^((longest )?\/health (p99|without)|longest event-loop stall)/.test(row),
    )
