import type { Queue } from 'bullmq'
import type { RedisOptions } from '../../platform/config/redis-place.ts'
import { answered, openQueue } from './bullmq.ts'
import { type BullData, closeInTime, jobIdOf, patternOf } from './bullmq-redis.ts'
import type { Schedules, Timing } from './port.ts'
import { scheduleId } from './schedule-times.ts'

/** Fires schedules by BullMQ's job schedulers: each has one job, that of its next tick. It connects at the first call. */
export function createBullSchedules(url: string, options: RedisOptions = {}): Schedules {
  let opening: Promise<Queue<BullData>> | undefined
  const open = () => {
    opening ??= openQueue('schedule', url, options)
    return opening
  }
  return {
    async put(tenant, name, timing) {
      const queue = await open()
      await answered(put(queue, { id: scheduleId(tenant, name), timing, data: { tenant, name } }))
    },
    async remove(tenant, name) {
      const queue = await open()
      await answered(queue.removeJobScheduler(scheduleId(tenant, name)))
    },
    async close() {
      const queue = await opening
      if (queue) await closeInTime(queue, queue.close())
    },
  }
}

type Entry = { id: string; timing: Timing; data: BullData }

/** Writes the schedule only when it is new, has changed, or has lost the job of its next tick: a write could repeat a tick. */
async function put(queue: Queue<BullData>, { id, timing, data }: Entry): Promise<void> {
  const repeat = patternOf(timing)
  const known = await queue.getJobScheduler(id)
  const isSame = known?.pattern === repeat.pattern && known.tz === repeat.tz
  if (isSame && known.next !== undefined && (await queue.getJob(jobIdOf(id, known.next)))) return
  await queue.upsertJobScheduler(id, repeat, { name: 'schedule', data })
}
