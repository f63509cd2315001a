import { relative } from 'node:path'
import mocha from 'mocha'
import type { Report } from './report.ts'

/** Mocha's spec reporter, which also sends the counts and the failed tests to the process that started this one. */
export default class GroupReporter extends mocha.reporters.Spec {
  constructor(runner: mocha.Runner, options: mocha.MochaOptions) {
    super(runner, options)
    runner.once(mocha.Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats
      const titles = this.failures.map((test) => test.titlePath().join(': '))
      const files = new Set(this.failures.flatMap(({ file }) => (file === undefined ? [] : [relative('.', file)])))
      const counts = { passed: passes, failed: failures, skipped: pending }
      process.send?.({ ...counts, failures: titles, failedFiles: [...files] } satisfies Report)
    })
  }
}
