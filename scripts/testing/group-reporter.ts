import { relative } from 'node:path'
import mocha from 'mocha'
import { cpuSeconds } from './cpu-time.ts'
import type { FileTime, Report } from './report.ts'

const { EVENT_RUN_END, EVENT_SUITE_BEGIN, EVENT_SUITE_END } = mocha.Runner.constants

/** Mocha's spec reporter, which also sends the counts, the failed tests and the times of the files to the process that started this one. */
export default class GroupReporter extends mocha.reporters.Spec {
  constructor(runner: mocha.Runner, options: mocha.MochaOptions) {
    super(runner, options)
    const times = measureFiles(runner)
    runner.once(EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats
      const titles = this.failures.map((test) => test.titlePath().join(': '))
      const files = new Set(this.failures.flatMap(({ file }) => (file === undefined ? [] : [relative('.', file)])))
      const counts = { passed: passes, failed: failures, skipped: pending }
      const failed = { failures: titles, failedFiles: [...files] }
      process.send?.({ ...counts, ...failed, files: [...times.values()] } satisfies Report)
    })
  }
}

/** Adds up the times of the top-level suites of each file. */
function measureFiles(runner: mocha.Runner): ReadonlyMap<string, FileTime> {
  const times = new Map<string, FileTime>()
  let [from, cpuFrom] = [0, 0]
  const isOfFile = ({ parent }: mocha.Suite) => parent?.root === true
  runner.on(EVENT_SUITE_BEGIN, (suite) => {
    if (isOfFile(suite)) [from, cpuFrom] = [performance.now(), cpuSeconds()]
  })
  runner.on(EVENT_SUITE_END, (suite) => {
    if (!isOfFile(suite) || suite.file === undefined) return
    const file = relative('.', suite.file)
    const { seconds, cpu } = times.get(file) ?? { seconds: 0, cpu: 0 }
    const took = (performance.now() - from) / 1000
    times.set(file, { file, seconds: seconds + took, cpu: cpu + cpuSeconds() - cpuFrom })
  })
  return times
}
