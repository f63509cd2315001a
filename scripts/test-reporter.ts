import mocha from 'mocha'
import { countLine } from './testing/report.ts'

/** Mocha's spec reporter with the line of D1.1 at the end. */
export default class TestReporter extends mocha.reporters.Spec {
  constructor(runner: mocha.Runner, options: mocha.MochaOptions) {
    super(runner, options)
    runner.once(mocha.Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats
      console.log(countLine({ passed: passes, failed: failures, skipped: pending }))
    })
  }
}
