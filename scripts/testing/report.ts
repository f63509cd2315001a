/** The result of one mocha process, as its reporter sends it. `failedFiles` have the tests and hooks that failed. */
export type Report = { passed: number; failed: number; skipped: number; failures: string[]; failedFiles: string[] }

/** Adds up reports, in their order. */
export function addReports(reports: readonly Report[]): Report {
  const sum: Report = { passed: 0, failed: 0, skipped: 0, failures: [], failedFiles: [] }
  for (const { passed, failed, skipped, failures, failedFiles } of reports) {
    sum.passed += passed
    sum.failed += failed
    sum.skipped += skipped
    sum.failures.push(...failures)
    sum.failedFiles.push(...failedFiles)
  }
  return sum
}

/** The last line of scripts/test (D1.1). */
export function countLine({ passed, failed, skipped }: Pick<Report, 'passed' | 'failed' | 'skipped'>): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
