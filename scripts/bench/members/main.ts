import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { startRedis } from '../../local-services/redis.ts'
import { Peers } from '../relay/peer.ts'
import { outcomeOf } from '../relay/row.ts'
import { renderTable } from '../relay/table.ts'
import { measureHandOver } from './hand-over.ts'
import { measureIdle } from './idle.ts'
import { measureJoiningProcess, measureJoins } from './joins.ts'
import { joinPlacing } from './placing-member.ts'
import { startMembers } from './start.ts'

const USAGE = `npm run bench:members -- [--workers 1000] [--gateways 50] [--sessions 10000]
Measures what many members of a cluster cost: Redis while nothing happens, a join, and the hand-over of one worker's sessions.
The members are simulated in few processes, with connections of their own and the real protocol.
`
const number = (by: number) => ({ type: 'string', default: String(by) }) as const
const { values } = parseArgs({
  options: {
    workers: number(1_000),
    gateways: number(50),
    sessions: number(10_000),
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const counts = { workers: Number(values.workers), gateways: Number(values.gateways) }
const startedAt = performance.now()
const say = (text: string) =>
  process.stdout.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${text}\n`)

const peers = new Peers(undefined)
process.once('exit', () => peers.killAll())
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const redis = await startRedis()
try {
  const hosts = await startMembers(peers, redis.url, { ...counts, say })
  const rows = await measureIdle(redis, { members: counts.workers + counts.gateways, hosts })
  say('measured Redis while nothing happens')
  const placing = await joinPlacing(redis.url)
  rows.push(...(await measureJoins(placing, hosts)), await measureJoiningProcess(peers, redis.url))
  say('measured joins')
  rows.push(await measureHandOver(redis.url, hosts, Number(values.sessions)))
  say('measured the hand-over')
  process.stdout.write(`\n${renderTable(rows)}\nload of the machine: ${loadavg()[0]?.toFixed(1)}\n`)
  process.exitCode = rows.every((each) => outcomeOf(each) === 'kept') ? 0 : 1
} catch (cause) {
  process.stderr.write(`${cause instanceof Error ? cause.stack : String(cause)}\n`)
  process.exitCode = 1
}
await redis.stop()
process.exit() // The members of this process would go on renewing their leases.
