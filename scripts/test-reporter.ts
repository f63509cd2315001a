import mocha from 'mocha'
import { countLine, EXIT_MS } from './testing/report.ts'

/** Mocha's spec reporter with the line of D1.1 at the end. A run that leaves something open fails instead of never ending. */
export default class TestReporter extends mocha.reporters.Spec {
  constructor(runner: mocha.Runner, options: mocha.MochaOptions) {
    super(runner, options)
    runner.once(mocha.Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats
      console.log(countLine({ passed: passes, failed: failures, skipped: pending }))
      setTimeout(() => process.exit(1), EXIT_MS).unref()
    })
  }
}
