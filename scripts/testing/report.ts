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

const SHOWN = 20

/** The files that took the longest, one a line. */
export function slowestFiles(files: readonly FileTime[]): string[] {
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SHOWN)
  return slowest.map(({ file, seconds, cpu }) => `${seconds.toFixed(1)} s, CPU ${cpu.toFixed(1)} s: ${file}`)
}
