import { globSync } from 'node:fs'
import { addReports, countLine } from './report.ts'
import { type GroupResult, runGroup } from './run-group.ts'
import { type Group, schedule } from './schedule.ts'
import { findUnitTests } from './unit-tests.ts'

/** Mocha processes at the same time: two for each core of the smallest machine, since most tests wait for others more than they compute. */
const LANES = 4
/** The same for the groups that load the whole machine. */
const HEAVY_LANES = 2

// Runs every test file, or with --unit the unit tests, in several mocha processes. The last line is the count (D1.1).
const isUnit = process.argv[2] === '--unit'
const files = isUnit ? findUnitTests('.') : globSync('test/**/*.test.ts').toSorted()
const env = isUnit ? { ...process.env, UNIT_TESTS: '1' } : process.env
const { light, heavy } = schedule(files)
const results = [...(await runAll(light, LANES)), ...(await runAll(heavy, HEAVY_LANES))]
const sum = addReports(results.map(({ report }) => report))
if (sum.failures.length > 0) console.log(`Failed:\n${sum.failures.map((title) => `  ${title}\n`).join('')}`)
console.log(countLine(sum))
process.exitCode = results.length > 0 && results.every(({ isOk }) => isOk) ? 0 : 1

/** Runs the groups in their order, `lanes` at a time, and prints the output of each when it ends. */
async function runAll(groups: readonly Group[], lanes: number): Promise<GroupResult[]> {
  const waiting = [...groups]
  const done: GroupResult[] = []
  const runLane = async () => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
      const result = await runGroup(group, env)
      console.log(`\n== ${group.name}: ${countLine(result.report)} in ${result.seconds.toFixed(1)} s${result.output}`)
      done.push(result)
    }
  }
  await Promise.all(Array.from({ length: lanes }, runLane))
  return done
}
