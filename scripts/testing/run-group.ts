import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { endWithParent } from '../local-services/watchdog.ts'
import { COMPILE_CACHE } from '../node-options.ts'
import { cpuSecondsOfChildren } from './cpu-time.ts'
import { memoryFolder } from './memory-folder.ts'
import { NO_TESTS, type Report } from './report.ts'
import type { Group } from './schedule.ts'

/** Time for a mocha process to end after its report. test/hooks.ts ends it earlier, unless its event loop is blocked. */
const EXIT_MS = 20_000

/**
 * `isOk` is false also when mocha failed without a failed test, such as for an `it.only`. `cpu`: the CPU seconds of the mocha process and of
 * all that it started.
 */
export type GroupResult = { name: string; isOk: boolean; report: Report; output: string; seconds: number; cpu: number }

/**
 * Runs the files of a group in one mocha process, with a folder of its own for temporary files, in memory where there is room. A process that
 * ends without a report counts as one failed test.
 */
type Files = Pick<Group, 'name' | 'files'>

export async function runGroup(group: Files, env: NodeJS.ProcessEnv): Promise<GroupResult> {
  const folder = await mkdtemp(join(memoryFolder(), 'tests-'))
  await chmod(folder, 0o755) // As /tmp: some tests start programs as another user.
  try {
    return await runIn(folder, group, env)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function runIn(folder: string, { name, files }: Files, env: NodeJS.ProcessEnv): Promise<GroupResult> {
  const startedAt = performance.now()
  const args = ['node_modules/mocha/bin/mocha.js', '--reporter', 'scripts/testing/group-reporter.ts', ...files]
  const child = spawn(process.execPath, args, {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, TMPDIR: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  if (child.pid !== undefined) endWithParent(child, folder)
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
  let cpu = 0
  child.once('exit', () => {
    cpu = cpuOfLastEnded()
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  clearTimeout(exitTimer)

  const own = report ?? NO_TESTS
  const problem = problemOf({ hasHung, report, how: signal ?? code })
  return {
    name,
    isOk: code === 0 && !problem,
    report: problem ? withProblem(own, `${name} ${problem}`) : own,
    output: output.join(''),
    seconds: (performance.now() - startedAt) / 1000,
    cpu,
  }
}

let counted = 0

/** The CPU seconds of the children that ended since the last call. Called at each exit, it gives those of one. */
export function cpuOfLastEnded(): number {
  const before = counted
  counted = cpuSecondsOfChildren()
  return counted - before
}

/** A process that hung or died is no matter of single files. */
const withProblem = (report: Report, problem: string): Report => ({
  ...report,
  failed: report.failed + 1,
  failures: [...report.failures, problem],
  failedFiles: [],
})

type Ending = { hasHung: boolean; report: Report | undefined; how: NodeJS.Signals | number | null }

/** How a process failed without a failed test. */
function problemOf({ hasHung, report, how }: Ending): string | undefined {
  if (hasHung) return `did not end within ${EXIT_MS / 1000} s of its last test: its event loop is blocked`
  if (report === undefined) return `ended with ${how} before its report`
  const allPassed = report.passed > 0 && report.failed === 0
  return allPassed && how !== 0 ? `ended with ${how} although no test failed: see its output` : undefined
}
