import { chooseFiles } from './choose-files.ts'
import { cpuSeconds } from './cpu-time.ts'
import { runInLanes } from './lanes.ts'
import { repeatFailed } from './repeat-failed.ts'
import { addReports, countLine, dearestFiles, folderCosts, slowestFiles } from './report.ts'
import { type GroupResult, runGroup } from './run-group.ts'
import { schedule } from './schedule.ts'

// Runs the test files that the arguments choose, in several mocha processes. The last line is the count (D1.1).
const { files, isUnit } = chooseFiles(process.argv.slice(2), console.log)
const env = isUnit ? { ...process.env, UNIT_TESTS: '1' } : process.env
const first: GroupResult[] = []
await runInLanes(schedule(files), async (group) => void first.push(show(await runGroup(group, env))))
const { results, passedWhenRepeated } = await repeatFailed(first, async (group) => show(await runGroup(group, env)))
const sum = addReports(results.map(({ report }) => report))
list('The slowest files', slowestFiles(sum.files))
list('The dearest files', dearestFiles(sum.files))
list('The cost of the folders', folderCosts(results))
console.log(`All tests: ${(performance.now() / 1000).toFixed(0)} s, CPU ${cpuSeconds().toFixed(0)} s\n`)
list('Passed only when repeated with nothing beside them', passedWhenRepeated)
list('Failed', sum.failures)
console.log(countLine(sum))
process.exitCode = results.length > 0 && results.every(({ isOk }) => isOk) ? 0 : 1

/** Prints the output of a group that has ended. */
function show(result: GroupResult): GroupResult {
  const { name, report, seconds, cpu, output } = result
  console.log(`\n== ${name}: ${countLine(report)} in ${seconds.toFixed(1)} s, CPU ${cpu.toFixed(0)} s${output}`)
  return result
}

function list(what: string, titles: readonly string[]): void {
  if (titles.length > 0) console.log(`${what}:\n${titles.map((title) => `  ${title}\n`).join('')}`)
}
