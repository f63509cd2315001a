import { once } from 'node:events'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'

/**
 * A program that adds jobs to BullMQ's queue, or one that handles them and does nothing. The first argument is `add` or `work`, the second the URL of Redis. The
 * adder does what its parent's messages say, and answers each one with the milliseconds that every job took, from the call to the word of its handler.
 */
export type Adding = { count: number; atOnce: number }

const NAME = 'empty'
const [role, url = ''] = process.argv.slice(2)
const connection = { url, maxRetriesPerRequest: null }

await (role === 'work' ? work() : add())
process.send?.('ready')
await once(process, 'disconnect')
process.exit()

/** Publishes the id of each job that has ended on a channel, as executors answer gateways over Redis. */
async function work(): Promise<void> {
  const told = new Redis(url)
  const worker = new Worker(NAME, async ({ id = '' }) => void (await told.publish(NAME, id)), {
    connection,
    concurrency: 32,
  })
  await worker.waitUntilReady()
}

async function add(): Promise<void> {
  const queue = new Queue(NAME, { connection, defaultJobOptions: { removeOnComplete: true, attempts: 1 } })
  const heard = new Redis(url)
  const waiting = new Map<string, () => void>()
  await heard.subscribe(NAME)
  heard.on('message', (_channel, id: string) => waiting.get(id)?.())
  let added = 0
  const doOne = async () => {
    const [jobId, start] = [`job-${added++}`, performance.now()]
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.set(jobId, resolve)
    await queue.add(NAME, { tenant: 'default' }, { jobId, priority: 1 })
    await promise
    waiting.delete(jobId)
    return performance.now() - start
  }
  await queue.waitUntilReady()
  const doAll = async ({ count, atOnce }: Adding) => {
    const times: number[] = []
    let left = count
    const lane = async () => {
      while (left-- > 0) times.push(await doOne())
    }
    await Promise.all(Array.from({ length: atOnce }, lane))
    process.send?.(times)
  }
  process.on('message', (adding: Adding) => void doAll(adding))
}
