import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'bullmq'
import type { RunReader } from '../../cluster/commands/runs.ts'
import { withDeadline } from '../../kernel/async/deadline.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { TraceLink } from '../../kernel/trace.ts'
import { connectionOptions, prefixOf, type RedisOptions } from '../../platform/config/redis-place.ts'
import { type ClientTimes, createRedisClient, retryStrategy } from '../../platform/redis/connect.ts'
import type { JobKind, Timing } from './port.ts'
import { nextTick } from './schedule-times.ts'

/** The key prefix of a kind of jobs. All its keys are on one node of a Redis Cluster, as BullMQ's scripts require. */
export const keyPrefixOf = (kind: JobKind, options: RedisOptions): string => `${prefixOf(options)}{${kind}}`

/** The part of a job that BullMQ stores besides its kind and id. A tick has the name of its schedule. */
export type BullData = { tenant: TenantId; name?: string; reader?: RunReader; trace?: TraceLink }

type Repeat = { pattern: string; tz?: string }

/** The timing as BullMQ stores it. BullMQ's own `every` would start with a tick at once, and again with every change. */
export function patternOf(timing: Timing): Repeat {
  if (!('cron' in timing)) return { pattern: `every ${timing.every_secs}` }
  const { cron, timezone: tz, least_secs: leastSecs } = timing
  return { pattern: leastSecs === undefined ? cron : `once in ${leastSecs} of ${cron}`, tz }
}

const EVERY = /^every (\d+)$/
const SLOWED = /^once in (\d+) of (.+)$/

/** Computes the next tick for BullMQ, which has a cron parser of its own that reads some patterns differently. */
export function repeatStrategy(after: number, { pattern = '', tz = 'UTC' }: Partial<Repeat>): number | undefined {
  const everySecs = EVERY.exec(pattern)?.[1]
  if (everySecs !== undefined) return nextTick({ every_secs: Number(everySecs) }, after)
  const [, leastSecs, cron] = SLOWED.exec(pattern) ?? []
  if (cron === undefined) return nextTick({ cron: pattern, timezone: tz }, after)
  return nextTick({ cron, timezone: tz, least_secs: Number(leastSecs) }, after)
}

/** BullMQ's id of the job of a tick, which it derives from the schedule's id and the time. */
export const jobIdOf = (scheduleId: string, at: number): string => `repeat:${scheduleId}:${at}`

/** The time in such an id. */
export const tickTimeOf = (jobId: string): number => Number(jobId.slice(jobId.lastIndexOf(':') + 1))

/** The connection for BullMQ. BullMQ cannot connect to a Redis Cluster itself; `closeInTime` ends the connection that it was given. */
export const bullConnection = (url: string, options: RedisOptions, times: ClientTimes): ConnectionOptions =>
  options.cluster
    ? createRedisClient(url, options, times)
    : { url, ...connectionOptions(url, options), ...times, retryStrategy }

/** Sends the commands of this turn of the event loop with one write. A Redis Cluster has a socket for each node, and writes them one by one. */
export function writeTogether(client: object): void {
  const { stream } = client as { stream?: Socket }
  stream?.cork()
  if (stream) setImmediate(() => stream.uncork())
}

const CLOSE_MS = 1_000

/**
 * Waits for the close of a queue or worker. Without Redis a close would wait forever, and so would a disconnect after it has stopped
 * the attempts to reconnect. `onLate` is called before it disconnects.
 */
export async function closeInTime(
  opened: { disconnect(): Promise<void>; opts: { connection: ConnectionOptions } },
  closed: Promise<void>,
  onLate: () => Promise<void> = async () => {},
): Promise<void> {
  try {
    await inTime(closed)
  } catch {
    await onLate()
    await inTime(opened.disconnect()).catch(() => {})
  }
  const { connection } = opened.opts
  if ('isCluster' in connection && connection.isCluster) connection.disconnect()
}

const inTime = (done: Promise<void>) => withDeadline(done, CLOSE_MS, () => new Error('Redis does not answer'))
