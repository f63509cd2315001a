import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { text } from 'node:stream/consumers'
import { chooseFiles } from './choose-files.ts'
import { cpuSeconds } from './cpu-time.ts'
import { runInLanes } from './lanes.ts'
import { repeatFailed } from './repeat-failed.ts'
import { addReports, countLine, dearestFiles, folderCosts, slowestFiles } from './report.ts'
import { cpuOfLastEnded, type GroupResult, runGroup } from './run-group.ts'
import { schedule } from './schedule.ts'

// Runs the test files that the arguments choose, in several mocha processes, without arguments beside the check. The last line is the count (D1.1).
const args = process.argv.slice(2)
const { files, isUnit } = chooseFiles(args, console.log)
const check = args.length === 0 ? runCheck() : true
const env = isUnit ? { ...process.env, UNIT_TESTS: '1' } : process.env
const first: GroupResult[] = []
await runInLanes(schedule(files), async (group) => void first.push(show(await runGroup(group, env))))
const isChecked = await check
const { results, passedWhenRepeated } = await repeatFailed(first, async (group) => show(await runGroup(group, env)))
const sum = addReports(results.map(({ report }) => report))
list('The slowest files', slowestFiles(sum.files))
list('The dearest files', dearestFiles(sum.files))
list('The cost of the folders', folderCosts(results))
console.log(`All tests: ${(performance.now() / 1000).toFixed(0)} s, CPU ${cpuSeconds().toFixed(0)} s\n`)
list('Passed only when repeated with nothing beside them', passedWhenRepeated)
list('Failed', sum.failures)
console.log(countLine(sum))
process.exitCode = isChecked && results.length > 0 && results.every(({ isOk }) => isOk) ? 0 : 1

/** Prints the output of a group that has ended. */
function show(result: GroupResult): GroupResult {
  const { name, report, seconds, cpu, output } = result
  console.log(`\n== ${name}: ${countLine(report)} in ${seconds.toFixed(1)} s, CPU ${cpu.toFixed(0)} s${output}`)
  return result
}

/** Runs the check with the CPU time that the tests leave, since most of them wait. Resolves with whether it found nothing. */
async function runCheck(): Promise<boolean> {
  const child = spawn('npm', ['run', 'check'], { stdio: ['ignore', 'pipe', 'pipe'] })
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW)
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = (await once(child, 'exit')) as [number | null]
  const cpu = cpuOfLastEnded()
  console.log(`\n== npm run check: CPU ${cpu.toFixed(0)} s\n${(await output).join('')}`)
  if (code !== 0) console.error('npm run check failed: see above.')
  return code === 0
}

function list(what: string, titles: readonly string[]): void {
  if (titles.length > 0) console.log(`${what}:\n${titles.map((title) => `  ${title}\n`).join('')}`)
}
