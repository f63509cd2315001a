import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { EXIT_MS, type Report } from './report.ts'
import type { Group } from './schedule.ts'

/** `isOk` is false also when mocha failed without a failed test, such as for an `it.only`. */
export type GroupResult = { isOk: boolean; report: Report; output: string; seconds: number }

/** Runs the files of a group in one mocha process. A process that ends without a report counts as one failed test. */
export async function runGroup({ name, files }: Group, env: NodeJS.ProcessEnv): Promise<GroupResult> {
  const startedAt = performance.now()
  const args = ['node_modules/mocha/bin/mocha.js', '--reporter', 'scripts/testing/group-reporter.ts', ...files]
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text) => output.push(text))

  let report: Report | undefined
  let exitTimer: NodeJS.Timeout | undefined
  let hasHung = false
  child.on('message', (message) => {
    report = message as Report
    exitTimer = setTimeout(() => {
      hasHung = true
      child.kill('SIGKILL')
    }, EXIT_MS)
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  clearTimeout(exitTimer)

  const problem = hasHung
    ? `did not end within ${EXIT_MS / 1000} s of its last test: something is left open`
    : report === undefined && `ended with ${signal ?? code} before its report`
  const own: Report = report ?? { passed: 0, failed: 0, skipped: 0, failures: [] }
  return {
    isOk: code === 0 && !problem,
    report: problem ? { ...own, failed: own.failed + 1, failures: [...own.failures, `${name} ${problem}`] } : own,
    output: output.join(''),
    seconds: (performance.now() - startedAt) / 1000,
  }
}
