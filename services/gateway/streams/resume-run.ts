import type { Response } from 'express'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { isLost, type RunSummary } from '../../../shared/cluster/commands/runs.ts'
import { LOST_SEQ } from '../../../shared/cluster/journal/frames.ts'
import { tenantOf } from '../middleware/auth.ts'
import { AnnouncedFrames, placeAnnouncement } from './announced-frames.ts'
import { answerHead, answerNothingLeft, type Relay } from './sse.ts'

export type Resumed = {
  runId: string
  /** Number of the last event that the client has; 0 for none. */
  after: number
}

/** Streams the events of a run after those that the client has (D4.5c), or answers HEAD. Throws `not_found` for an unknown run. */
export async function resumeRun(
  { broker, relay }: { broker: Broker; relay: Relay },
  res: Response,
  { runId, after }: Resumed,
): Promise<void> {
  const isHead = res.req.method === 'HEAD'
  const run = isHead || after > 0 ? await broker.getRun(tenantOf(res), runId) : undefined
  if (run && isOver(run, after)) return answerNothingLeft(runId, res)
  if (isHead) return answerHead(runId, res)
  const tenant = tenantOf(res)
  const frames = await broker.followRun(tenant, runId, after)
  const place = async () => placeAnnouncement(await broker.getRun(tenant, runId))
  relay({ runId, frames: after === 0 ? new AnnouncedFrames(frames, place) : frames, after }, res)
}

/** A number above that of the last event is treated as the last (D4.5c). */
const isOver = (run: RunSummary, after: number): boolean =>
  run.ended_at !== null && after >= (isLost(run) ? LOST_SEQ : run.event_count)
