import { posix } from 'node:path'
import { REASONS } from './reasons.ts'

/** How long a test file took, with its hooks. `cpu`: the CPU time of its process, and of the children that ended meanwhile. */
export type FileTime = { file: string; seconds: number; cpu: number }

/** The result of one mocha process, as its reporter sends it. `failedFiles` have the tests and hooks that failed. */
export type Report = {
  passed: number
  failed: number
  skipped: number
  failures: string[]
  failedFiles: string[]
  files: FileTime[]
}

export const NO_TESTS: Report = { passed: 0, failed: 0, skipped: 0, failures: [], failedFiles: [], files: [] }

/** Adds up reports, in their order. */
export function addReports(reports: readonly Report[]): Report {
  return reports.reduce(
    (sum, each) => ({
      passed: sum.passed + each.passed,
      failed: sum.failed + each.failed,
      skipped: sum.skipped + each.skipped,
      failures: [...sum.failures, ...each.failures],
      failedFiles: [...sum.failedFiles, ...each.failedFiles],
      files: [...sum.files, ...each.files],
    }),
    NO_TESTS,
  )
}

/** The last line of scripts/test (D1.1). */
export function countLine({ passed, failed, skipped }: Pick<Report, 'passed' | 'failed' | 'skipped'>): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

const SHOWN = 10

/** The files that took the longest, one a line. */
export function slowestFiles(files: readonly FileTime[]): string[] {
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SHOWN)
  return slowest.map(({ file, seconds, cpu }) => `${seconds.toFixed(1)} s, CPU ${cpu.toFixed(1)} s: ${file}`)
}

/** The files that used the most CPU time, one a line, each with the reason why it may. */
export function dearestFiles(files: readonly FileTime[]): string[] {
  const dearest = files.toSorted((a, b) => b.cpu - a.cpu).slice(0, SHOWN)
  return dearest.map(({ file, cpu }) => `CPU ${cpu.toFixed(1)} s: ${file}: ${REASONS[file] ?? 'no reason is given'}`)
}

/**
 * The CPU time of each folder of tests, the dearest first, and of what belongs to no file: the processes of mocha, the modules that
 * they load, and the servers that files share.
 */
export function folderCosts(results: readonly { cpu: number; report: Report }[]): string[] {
  const files = results.flatMap(({ report }) => report.files)
  const costs = new Map<string, number>()
  for (const { file, cpu } of files) costs.set(folderOf(file), (costs.get(folderOf(file)) ?? 0) + cpu)
  const sum = (values: Iterable<number>) => [...values].reduce((total, cpu) => total + cpu, 0)
  costs.set('loading and shared servers', sum(results.map(({ cpu }) => cpu)) - sum(costs.values()))
  return [...costs].toSorted(([, a], [, b]) => b - a).map(([folder, cpu]) => `CPU ${cpu.toFixed(1)} s: ${folder}`)
}

/** The folder of a part, such as test/worker, or test itself. */
export const folderOf = (file: string): string => posix.dirname(file).split('/').slice(0, 2).join('/')
