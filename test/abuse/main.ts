import { parseArgs } from 'node:util'
import { type Guarantee, isKept, renderGuarantees } from '../harness/guarantee.ts'
import { chooseSeed, Random } from '../harness/seed.ts'
import { measureNeverRead } from './never-read.ts'
import { measureSlowloris } from './slowloris.ts'

const USAGE = `npm run abuse -- [--full] [--seed N] [--sockets N]
  --full     also wait for the answers to slow uploads and attack with clients that never read (3 min instead of 30 s)
  --quick    the short form, which is the default
  --seed     replay the attack of this seed
  --sockets  slow connections at a time, 1000 by default
`
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    seed: { type: 'string' },
    sockets: { type: 'string', default: '1000' },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const random = new Random(chooseSeed(options.seed, (line) => process.stdout.write(`${line}\n`)))
const isFull = options.full && !options.quick
const slowness = { sockets: Number(options.sockets), uploads: 20, waitsForUploads: isFull }

const guarantees = await report('slow writers (P10)', measureSlowloris(slowness, random.fork('slowloris')))
if (isFull) guarantees.push(...(await report('clients that never read (P9)', measureNeverRead())))
process.exit(guarantees.every(isKept) ? 0 : 1)

async function report(title: string, measuring: Promise<Guarantee[]>): Promise<Guarantee[]> {
  const measured = await measuring
  process.stdout.write(`\n${title}\n${renderGuarantees(measured)}\n`)
  return measured
}
