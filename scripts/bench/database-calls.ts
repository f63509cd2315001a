import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import type { FlowCluster } from './cluster.ts'
import { threadsCpuMs } from './proc.ts'

/** The work of a cluster's processes since they started: numbers by name. */
export type Work = {
  /** The commands of MongoDB that read or write documents; one may hold several writes. */
  mongo: Numbers
  /** The commands of Redis, those of its scripts included. */
  redis: Numbers
  /** Milliseconds of CPU, user and system, by the role of the process. */
  cpuMs: Numbers
}

export type Numbers = Readonly<Record<string, number>>

/** Asks the databases of a cluster what they have done. */
export type WorkCounter = AsyncDisposable & { read(): Promise<Work> }

const COUNTED = ['find', 'aggregate', 'insert', 'update', 'findAndModify', 'delete'] as const

export async function openWorkCounter({ mongoUrl, redisUrl, pidsOf }: FlowCluster): Promise<WorkCounter> {
  const [mongo, redis] = [await MongoClient.connect(mongoUrl), new Redis(redisUrl)]
  return {
    async read() {
      const { metrics } = await mongo.db('admin').command({ serverStatus: 1 })
      return {
        mongo: Object.fromEntries(COUNTED.map((name) => [name, Number(metrics.commands[name].total)])),
        redis: await redisCalls(redis),
        cpuMs: Object.fromEntries(Object.entries(pidsOf).map(([role, pids]) => [role, sum(pids.map(threadsCpuMs))])),
      }
    },
    async [Symbol.asyncDispose]() {
      redis.disconnect()
      await mongo.close()
    },
  }
}

/** The commands that a Redis has carried out, those of its scripts included. */
export async function redisCalls(redis: Redis): Promise<Numbers> {
  const text = await redis.info('commandstats')
  return Object.fromEntries(
    [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, n]) => [name, Number(n)]),
  )
}

/** Does the work so often, and several of it at once. */
export async function doAtOnce(
  work: () => Promise<void>,
  { count, atOnce }: { count: number; atOnce: number },
): Promise<void> {
  let left = count
  const lane = async () => {
    while (left-- > 0) await work()
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
}

/** How much more `after` holds than `before`. */
export const workBetween = (before: Work, after: Work): Work => combined(before, after, (a, b) => b - a)

/** Subtracts the idle work and divides the rest by `count` pieces. `idle` was measured for `share` times as long as `work`. */
export const perPiece = (work: Work, { idle, share, count }: { idle: Work; share: number; count: number }): Work =>
  combined(idle, work, (resting, all) => Math.max(0, all - resting / share) / count)

export const totalOf = (numbers: Numbers): number => sum(Object.values(numbers))

/** The largest numbers first, those that round to nothing left out. */
export const shownNumbers = (numbers: Numbers, most = Infinity): string =>
  Object.entries(numbers)
    .filter(([, value]) => value >= 0.05)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, most)
    .map(([name, value]) => `${name} ${value.toFixed(1)}`)
    .join(', ')

function combined(a: Work, b: Work, operation: (a: number, b: number) => number): Work {
  const each = (from: Numbers, to: Numbers): Numbers =>
    Object.fromEntries(Object.keys(to).map((name) => [name, operation(from[name] ?? 0, to[name] ?? 0)]))
  return { mongo: each(a.mongo, b.mongo), redis: each(a.redis, b.redis), cpuMs: each(a.cpuMs, b.cpuMs) }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
