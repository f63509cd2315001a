import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { Bench } from '../bench.ts'
import { Processes } from '../processes.ts'
import { Peers } from '../relay/peer.ts'
import { outcomeOf } from '../relay/row.ts'
import { ScaleClient } from '../scale/client.ts'
import { startScaleCluster } from '../scale/cluster.ts'
import { measure } from './measure.ts'
import { RedisView } from './redis-view.ts'
import { goalsOf, reportOf } from './report.ts'

const USAGE = `npm run bench:events -- [--quick]
  --quick  200 readers and shorter times
Measures GET /events: 1,000 readers of one tenant at two gateways, beside one reader and none, while runs start at a constant rate. It shows the
CPU of each process, the work of Redis, the time from the writing of an event to each reader, and whether each reader got every event.
`
const GATEWAYS = 2
const RUNS_PER_SECOND = 10
const FULL = { readers: 1_000, windowMs: 20_000, restMs: 10_000 }
const QUICK = { readers: 200, windowMs: 4_000, restMs: 2_000 }
/** The remains of a run are removed within the warm-up: that would otherwise be work of a later measurement. */
const ENV = { RUN_RESUME_SECS: '1' }
const WITHIN_MS = 180_000
/** Beyond this load average, other processes delay the events. */
const CALM_LOAD = 1

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
})
if (options.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const { readers, windowMs, restMs } = options.quick ? QUICK : FULL

const processes = new Processes()
const peers = new Peers(undefined)
process.once('exit', () => {
  peers.killAll()
  processes.killAll()
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
setTimeout(() => {
  process.stderr.write(`the bench took longer than ${WITHIN_MS / 1_000} s\n`)
  process.exit(1)
}, WITHIN_MS).unref()

const [load = 0] = loadavg()
if (load > CALM_LOAD) process.stdout.write(`the machine is busy (load ${load.toFixed(1)}), which delays the events\n`)
process.exit((await measureAll()) ? 0 : 1)

/** Resolves with whether all goals are kept. */
async function measureAll(): Promise<boolean> {
  const bench = new Bench({
    isQuick: options.quick,
    signal: AbortSignal.timeout(WITHIN_MS),
    processes,
    shared: new Map(),
  })
  await using provider = await bench.provider()
  const place = { modelUrl: `http://127.0.0.1:${provider.port}/v1`, dataDir: processes.dir, env: ENV }
  await using cluster = await startScaleCluster({ gateways: GATEWAYS, workers: 1 }, place)
  using client = new ScaleClient(cluster)
  using redis = new RedisView(cluster.redisUrl)
  const parts = { cluster, client, redis, peers, provider }
  const take = async (count: number, ms: number) => {
    const measured = await measure(parts, { readers: count, runsPerSecond: RUNS_PER_SECOND, windowMs: ms })
    process.stdout.write(`readers: ${count} measured\n`)
    return measured
  }
  const [none, one] = [await take(0, restMs), await take(1, restMs)]
  const most = await take(readers, windowMs)
  const rows = goalsOf({ most, one, gateways: GATEWAYS })
  process.stdout.write(`\n${reportOf([none, one, most], rows)}\n`)
  return rows.every((row) => outcomeOf(row) === 'kept')
}
