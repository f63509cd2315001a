import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { Processes } from '../processes.ts'
import { FULL, QUICK } from './measures.ts'
import { nodesReportOf, reportOf } from './report.ts'
import { measureNodesRound, measureRound } from './rounds.ts'

const ROUNDS = 3
const WITHIN_MS = 1_500_000
/** Beyond this load average, other processes distort what is done in a second, but hardly the CPU of a unit. */
const CALM_LOAD = 1

const USAGE = `npm run bench:scale -- [--quick] [--redis-nodes]
  --quick        one round with fewer sessions and streams
  --redis-nodes  only what streams cost each node of a Redis Cluster of 1, 2 and 3 nodes
Measures what streams, runs and idle sessions cost in each kind of process, what a second gateway and a second worker add, and computes from it
what so many users need. ${ROUNDS} rounds on fresh processes, about 8 minutes on 2 cores.
`
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    'redis-nodes': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}

const processes = new Processes()
process.once('exit', () => processes.killAll())
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const [load = 0] = loadavg()
if (load > CALM_LOAD) process.stdout.write(`the machine is busy (load ${load.toFixed(1)})\n`)
const signal = AbortSignal.timeout(WITHIN_MS)
const around = { processes, size: options.quick ? QUICK : FULL, signal }
const report = options['redis-nodes']
  ? nodesReportOf(await inRounds(() => measureNodesRound(around)))
  : reportOf(await inRounds(() => measureRound(around)), Math.random)
process.stdout.write(`\n${report}\n`)
process.exit(0)

async function inRounds<T>(measure: () => Promise<T>): Promise<T[]> {
  const rounds: T[] = []
  for (let n = 1; n <= (options.quick ? 1 : ROUNDS); n++) {
    const from = performance.now()
    rounds.push(await measure())
    process.stdout.write(`round ${n}: ${((performance.now() - from) / 1_000).toFixed(0)} s\n`)
  }
  return rounds
}
