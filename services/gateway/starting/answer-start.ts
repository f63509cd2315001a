import type { Request, RequestHandler, Response } from 'express'
import type { Broker, OnNamed, OpenedRun } from '../../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../../shared/cluster/commands/runs.ts'
import { retryUntil } from '../../../shared/kernel/async/retry.ts'
import type { ReadBody } from '../bodies/body.ts'
import { answerUntilLeft, endWithClient, onDisconnectOf, withReaderNeeds } from '../client-gone.ts'
import { tenantOf } from '../middleware/auth.ts'
import { idempotencyKeyOf, lastEventId, pathId, queryFlag, SESSION } from '../params.ts'
import { AnnouncedFrames, placeAnnouncement } from '../streams/announced-frames.ts'
import { resumeRun } from '../streams/resume-run.ts'
import type { Relay } from '../streams/sse.ts'
import { answerOf } from './run-answer.ts'
import type { StartedRun, StartOnce } from './start-once.ts'
import { announcement, findWaitingRun, type WaitingRun, waitingBody } from './waiting-run.ts'

type Deps = { broker: Broker; relay: Relay; once: StartOnce }

/** Starts a one-shot run. A refusal is a plain HTTP error, because the stream opens only after the run is accepted. */
export function startRun({ readBody, ...deps }: Deps & { readBody: ReadBody }): RequestHandler {
  return async (req, res) => {
    const request = await readBody(req, res, 'RunRequest')
    if (request.customer_id === '') delete request.customer_id // An empty id counts as none (D2.11).
    const asked = withReaderNeeds(req, request)
    if (queryFlag(req, 'dry_run')) return answerDryRun(req, res, () => deps.broker.estimateRun(tenantOf(res), asked))
    const open = (onNamed?: OnNamed) => deps.broker.startRun(tenantOf(res), asked, onNamed)
    await answerStart(req, res, deps, { operation: 'run', request, open })
  }
}

/** Answers a dry run (D57). An Idempotency-Key is checked, but not stored. */
async function answerDryRun(req: Request, res: Response, estimate: () => Promise<object>): Promise<void> {
  idempotencyKeyOf(req)
  res.json(await estimate())
}

/** Continues a session's conversation. */
export function sendMessage({ readBody, ...deps }: Deps & { readBody: ReadBody }): RequestHandler {
  return async (req, res) => {
    const sessionId = pathId(req, 'id', SESSION)
    const request = await readBody(req, res, 'SendMessageRequest')
    const asked = withReaderNeeds(req, request)
    const open = (onNamed?: OnNamed) => deps.broker.sendMessage(tenantOf(res), sessionId, asked, onNamed)
    await answerStart(req, res, deps, { operation: `message ${sessionId}`, request, sessionId, open })
  }
}

type Start = {
  /** The kind of request, for which an Idempotency-Key is unique. */
  operation: string
  request: { background?: boolean; if_waiting?: 'wait' | 'deny'; wait_secs?: number }
  /** The session of a message; the message may wait for earlier messages of the session. */
  sessionId?: string
  /** Starts the run. */
  open(onNamed?: OnNamed): Promise<OpenedRun>
}

/** Starts a run and answers the request with its events, its result, or its id alone (D25). */
async function answerStart(req: Request, res: Response, deps: Deps, start: Start): Promise<void> {
  const { broker, once } = deps
  const { operation, request, sessionId, open } = start
  const key = idempotencyKeyOf(req)
  const after = key === undefined ? 0 : lastEventId(req)
  const onDisconnect = onDisconnectOf(req)
  const started: StartedRun =
    key === undefined ? asStarted(await open()) : await once.start(tenantOf(res), { operation, key, request, open })
  const { runId, isReplayed } = started
  const mayWait = sessionId !== undefined && request.if_waiting !== 'deny'
  const findWaiting = async () => (mayWait ? findWaitingRun(broker, tenantOf(res), sessionId, runId) : undefined)
  const named = () => {
    if (isReplayed) res.setHeader('Idempotency-Replayed', 'true')
    return res.setHeader('X-Run-ID', runId)
  }
  if (onDisconnect === 'cancel' && !request.background) endWithClient(broker, res, { runId })
  if (request.background) {
    await leaveRunning(started, () => broker.followRun(tenantOf(res), runId, 0))
    const waiting = await findWaiting().catch(() => undefined) // An error is ignored: the run is accepted in any case.
    named()
      .status(202)
      .json({ run_id: runId, ...(waiting && { waiting_for_permission: waitingBody(waiting) }) })
  } else if (wantsJson(req)) {
    await answerUntilLeft(res, async (signal) => {
      const { calls: _, ...answer } = await answerOf(started, signal)
      named()
      return answer
    })
  } else {
    named()
    const place = request.wait_secs && (() => broker.getRun(tenantOf(res), runId))
    const frames = mayWait || place ? announced(started.frames, { findWaiting, place }) : started.frames
    await streamStarted(deps, res, { runId, isReplayed, frames, after })
  }
}

const asStarted = ({ runId, frames }: OpenedRun): StartedRun => ({ runId, frames, isReplayed: false })

type Notices = { findWaiting(): Promise<WaitingRun | undefined>; place: (() => Promise<RunSummary>) | 0 | undefined }

const announced = (frames: OpenedRun['frames'], { findWaiting, place }: Notices) =>
  new AnnouncedFrames(frames, async () => {
    const waiting = await findWaiting()
    if (waiting) return announcement(waiting)
    return place ? placeAnnouncement(await place()) : ''
  })

/**
 * Streams a run from its first event. A client that repeats a request after its connection broke names the last event that it has. If the key
 * already belongs to a run, the stream continues after that event; a new run starts from its first event.
 */
export function streamStarted(
  deps: { broker: Broker; relay: Relay },
  res: Response,
  { runId, frames, isReplayed, after }: StartedRun & { after: number },
): Promise<void> | void {
  if (!isReplayed || after === 0) return deps.relay({ runId, frames }, res)
  return streamRest(deps, res, { runId, frames, after })
}

async function streamRest(
  deps: { broker: Broker; relay: Relay },
  res: Response,
  { runId, frames, after }: OpenedRun & { after: number },
): Promise<void> {
  await frames[Symbol.asyncIterator]().return?.()
  await resumeRun(deps, res, { runId, after })
}

/**
 * Makes a run begin and continue without a reader, by following it for a moment. The run is accepted already: if its worker does not answer now, the
 * attempt is repeated after the client has its answer.
 */
export async function leaveRunning({ frames }: OpenedRun, follow: () => Promise<OpenedRun['frames']>): Promise<void> {
  const close = (stream: OpenedRun['frames']) => stream[Symbol.asyncIterator]().return?.()
  const leave = async () => {
    const followed = await follow()
    await close(frames)
    await close(followed)
  }
  try {
    await leave()
  } catch {
    const until = performance.now() + FOLLOW_MS
    retryUntil(leave, { pauses: FOLLOW_EVERY_MS, until, ref: false }).catch(() => close(frames))
  }
}

const FOLLOW_MS = 10_000
const FOLLOW_EVERY_MS = 250

/** Whether the client accepts JSON and no stream. Clients that accept anything get the stream (api.md "Streaming"). */
const wantsJson = (req: Request): boolean =>
  req.accepts('text/event-stream') === false && req.accepts('application/json') !== false
