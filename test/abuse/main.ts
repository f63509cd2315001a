import { parseArgs } from 'node:util'
import { type Guarantee, isKept, renderPromises } from '../harness/guarantee.ts'
import { chooseSeed, Random } from '../harness/seed.ts'
import { measureNeverRead } from './never-read.ts'
import { measureSlowloris } from './slowloris.ts'

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    seed: { type: 'string' },
    sockets: { type: 'string', default: '1000' },
  },
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const random = new Random(chooseSeed(options.seed, (line) => process.stdout.write(`${line}\n`)))
const isFull = options.full && !options.quick
const slowness = { sockets: Number(options.sockets), uploads: 20, waitsForUploads: isFull }

const promises = await report('slow writers (P10)', measureSlowloris(slowness, random.fork('slowloris')))
if (isFull) promises.push(...(await report('readers that never read (P9)', measureNeverRead())))
process.exit(promises.every(isKept) ? 0 : 1)

async function report(title: string, measuring: Promise<Guarantee[]>): Promise<Guarantee[]> {
  const measured = await measuring
  process.stdout.write(`\n${title}\n${renderPromises(measured)}\n`)
  return measured
}
