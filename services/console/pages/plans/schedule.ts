import type { Schema } from '../../../../shared/client/api.ts'
import { get, send } from '../../api/engine.ts'

export type Schedule = Schema<'PlanSchedule'>

export const schedulePath = (name: string): string => `/plans/schedules/${encodeURIComponent(name)}`

/** Pauses a schedule or lets it go on, and leaves all else of it as it is now, whatever this page has read before. */
export async function setPaused(name: string, paused: boolean): Promise<void> {
  const { cron, timezone, every_secs, plan } = await get<Schedule>(schedulePath(name))
  const timing = cron === undefined ? { every_secs } : { cron, timezone }
  await send('PUT', schedulePath(name), { ...timing, plan, paused })
}
