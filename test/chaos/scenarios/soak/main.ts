import { parseArgs } from 'node:util'
import { type Guarantee, isKept, renderGuarantees } from '../../../harness/guarantee.ts'
import { LoopLag } from '../../../harness/loop-lag.ts'
import { chooseSeed, Random } from '../../../harness/seed.ts'
import { soak } from './soak.ts'

const SHORT_MINUTES = 10
const FULL_MINUTES = 60

const USAGE = `npm run soak -- [options]
  --minutes  how long faults are injected: ${SHORT_MINUTES} by default
  --full     for an hour
  --untimed  show the availability without judging it, for a machine that is busy with other work
  --seed     replay the faults of this seed
Every 5 to 15 s a random process of a cluster is killed, frozen, cut off from Redis, slowed down, or has its clock shifted; Redis and
MongoDB too. The exit code is 1 when an invariant was violated.
`
const say = (line: string) => void process.stdout.write(`${line}\n`)

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string' },
    full: { type: 'boolean', default: false },
    untimed: { type: 'boolean', default: false },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  say(USAGE)
  process.exit(0)
}
const minutes = Number(options.minutes ?? (options.full ? FULL_MINUTES : SHORT_MINUTES))
if (!(minutes > 0)) throw new Error(`'${options.minutes}' is not a number of minutes above 0`)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const seed = chooseSeed(options.seed, say)
using lag = new LoopLag()
const rows = await soak({ minutes, random: new Random(seed), say }).catch(failed)
say(`\nP18, ${minutes} minutes, seed ${seed}\n${renderGuarantees(rows)}\n(${lag.text})\n`)
const isAllKept = rows.filter(({ unit }) => unit === '' || !options.untimed).every(isKept)
say(isAllKept ? 'all kept' : 'BROKEN: see above')
process.exit(isAllKept ? 0 : 1)

function failed(cause: unknown): Guarantee[] {
  const detail = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return [{ title: 'could not be measured', value: 1, unit: '', goal: { atMost: 0 }, detail }]
}
