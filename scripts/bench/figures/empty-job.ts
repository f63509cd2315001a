import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { startRedis } from '../../local-services/redis.ts'
import { redisCalls, shownNumbers, totalOf } from '../database-calls.ts'
import type { Figure } from '../figure.ts'
import { threadsCpuMs } from '../proc.ts'
import type { Adding } from '../programs/empty-job.ts'
import { median } from '../statistics.ts'

const PROGRAM = join(import.meta.dirname, '../programs/empty-job.ts')
const COMPILED = 3_000
const AT_ONCE = 16
const MOST_NAMES = 8

/** The least that a queued piece of work can cost here: one process adds a job that BullMQ hands to another one, which does nothing and says so. */
export const emptyJob: Figure = {
  name: 'empty-job',
  title: 'CPU of an empty job of BullMQ, one that adds, one that handles, and Redis',
  goal: { atMost: 3 },
  unit: ' ms',
  async measure(bench) {
    await using redis = await startRedis()
    const calls = new Redis(redis.url)
    using worker = await start('work', redis.url)
    using adder = await start('add', redis.url)
    const add = async (adding: Adding) => {
      adder.child.send(adding)
      const [times] = (await once(adder.child, 'message', { signal: bench.signal })) as [number[]]
      return times
    }
    await add({ count: bench.pick(COMPILED, COMPILED / 3), atOnce: AT_ONCE })
    const pids = { adder: adder.child.pid ?? 0, handler: worker.child.pid ?? 0, redis: redis.pid }
    const measure = async (adding: Adding) => {
      const read = async () => ({ redis: await redisCalls(calls), cpu: cpuOf(pids) })
      const [before, begun] = [await read(), performance.now()]
      const times = await add(adding)
      const [after, ms] = [await read(), performance.now() - begun]
      const [cpu, redisOf] = [perJob(before.cpu, after.cpu, adding), perJob(before.redis, after.redis, adding)]
      return { times, perSecond: (1_000 * adding.count) / ms, cpu, redisOf }
    }
    const one = await measure({ count: bench.pick(600, 200), atOnce: 1 })
    const many = await measure({ count: bench.pick(2_400, 800), atOnce: AT_ONCE })
    calls.disconnect()
    const shown = ({ cpu, redisOf }: typeof one) =>
      `Redis ${totalOf(redisOf).toFixed(0)} (${shownNumbers(redisOf, MOST_NAMES)}), CPU ${totalOf(cpu).toFixed(2)} ms (${shownNumbers(cpu)})`
    return {
      value: totalOf(many.cpu),
      detail: `one at a time p50 ${median(one.times).toFixed(1)} ms, ${shown(one)}; ${AT_ONCE} at a time ${many.perSecond.toFixed(0)}/s, ${shown(many)}`,
    }
  },
}

type Numbers = Readonly<Record<string, number>>

const cpuOf = (pids: Numbers): Numbers =>
  Object.fromEntries(Object.entries(pids).map(([role, pid]) => [role, threadsCpuMs(pid)]))

const perJob = (before: Numbers, after: Numbers, { count }: Adding): Numbers =>
  Object.fromEntries(Object.entries(after).map(([name, value]) => [name, (value - (before[name] ?? 0)) / count]))

async function start(role: 'add' | 'work', url: string): Promise<Disposable & { child: ChildProcess }> {
  const child = fork(PROGRAM, [role, url])
  await once(child, 'message')
  return { child, [Symbol.dispose]: () => void child.kill() }
}
