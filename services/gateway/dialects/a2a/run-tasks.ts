import type { Response } from 'express'
import { runIdOf } from '../../../../shared/kernel/ids.ts'
import { leaving } from '../../client-gone.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { idempotencyKeyOf } from '../../params.ts'
import { leaveRunning } from '../../starting/answer-start.ts'
import type { DialectDeps } from '../dialect.ts'
import { sessionIdIn } from '../shared/conversation.ts'
import { readResponse } from '../shared/response-stream.ts'
import { publishedFlow, startFlow } from '../shared/start-flow.ts'
import { historyOfRun } from './history.ts'
import { headOf, listedRun } from './listed-task.ts'
import { type IncomingMessage, inputOf, keyOf, promptOf, readAnswers } from './message.ts'
import { type Call, type OpenedTask, opened, type SeenTask } from './opened-task.ts'
import { RpcError } from './rpc.ts'
import { hasEnded } from './task.ts'
import type { TaskRef } from './task-id.ts'
import { TaskProjection } from './task-projection.ts'

/** Sends a message to the session of its context. */
export async function sendToSession(deps: DialectDeps, call: Call, message: IncomingMessage): Promise<OpenedTask> {
  const { messageId, fields, attachments } = message
  const given = message.contextId === undefined ? undefined : sessionIdIn(fields, 'contextId')
  const key = given === undefined ? idempotencyKeyOf(call.req) : `${given} ${messageId}`
  const sent = {
    sessionId: given,
    message: { prompt: promptOf(message), ...(attachments.length > 0 && { attachments }) },
    seed: () => [],
    key,
  }
  const { runId, frames, sessionId: contextId } = await deps.conversations.send(call.res, 'a2a', sent)
  const ref = { runId, contextId }
  const leave = () => leaveRunning({ runId, frames }, () => deps.broker.followRun(tenantOf(call.res), runId, 0))
  return opened({ ref, source: { frames }, projection: new TaskProjection(ref), leave })
}

/** Runs the flow that a message names. */
export async function runFlow(
  deps: DialectDeps,
  call: Call,
  message: IncomingMessage & { flow: string },
): Promise<OpenedTask> {
  const flow = await publishedFlow(deps, call.res, message.flow)
  const started = await startFlow(deps, call, { flow, input: inputOf(message), key: keyOf(call.req, message) })
  call.res.setHeader('X-Trace-ID', started.traceId)
  const runId = runIdOf(started.traceId)
  const ref = { runId, contextId: message.contextId ?? runId }
  const projection = new TaskProjection(ref, { isQueued: true })
  return opened({ ref, source: { frames: await started.frames() }, projection })
}

/** Makes a task from all events of its run so far. When the run's process has died the number of events is not known. */
export async function readRun({ broker }: DialectDeps, res: Response, ref: TaskRef): Promise<SeenTask> {
  const tenant = tenantOf(res)
  const run = await broker.getRun(tenant, ref.runId)
  const count = run.event_count
  const isQueued = run.status === 'waiting' && count === 0
  const projection = new TaskProjection(ref, { isQueued })
  if (!isQueued) {
    const frames = await broker.followRun(tenant, ref.runId, 0)
    const until = run.ended_at === null ? count : Number.POSITIVE_INFINITY
    await readResponse({ frames, passed: Number.POSITIVE_INFINITY }, projection, { signal: leaving(res), until })
  }
  // The record of a run is kept for longer than its events.
  const record = projection.isCut ? { ...listedRun(run), ref } : undefined
  const task = record ? headOf(record) : projection.task
  const isOver = record ? hasEnded(record) : projection.isOver
  const { asked } = projection
  return {
    ...{ ref, task, isOver, asked },
    history: () => historyOfRun(broker, tenant, ref),
    async follow() {
      const frames = await broker.followRun(tenant, ref.runId, 0)
      const rest = new TaskProjection(ref, { since: count, isQueued })
      return opened({ ref, source: { frames, passed: count + 1 }, projection: rest })
    },
  }
}

/** Cancels the run, which then ends at once. The returned task shows that end. */
export async function cancelRun(
  { broker }: DialectDeps,
  res: Response,
  { ref, isOver }: SeenTask,
): Promise<OpenedTask> {
  if (isOver) throw new RpcError('task_not_cancelable', 'the task has ended')
  await broker.cancelRun(tenantOf(res), ref.runId)
  const frames = await broker.followRun(tenantOf(res), ref.runId, 0)
  return opened({ ref, source: { frames, passed: Number.POSITIVE_INFINITY }, projection: new TaskProjection(ref) })
}

/**
 * Answers the permission requests of a task. The response begins with the events after the pause in which they were
 * made.
 */
export async function answerTask(
  deps: DialectDeps,
  res: Response,
  { message, seen: { ref, asked } }: { message: IncomingMessage; seen: SeenTask },
): Promise<OpenedTask> {
  if (asked.length === 0)
    throw new RpcError('unsupported_operation', 'the task asks nothing now: send a message with its contextId alone')
  const answers = readAnswers(message, asked)
  await deps.conversations.answer(res, ref.contextId, answers)
  const known = new Set(answers.map(({ id }) => id))
  const frames = await deps.broker.followRun(tenantOf(res), ref.runId, 0)
  const projection = new TaskProjection(ref, { since: Number.POSITIVE_INFINITY })
  return opened({ ref, source: { frames, known }, projection })
}
