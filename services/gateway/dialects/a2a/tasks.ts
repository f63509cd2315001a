import type { Request, Response } from 'express'
import { runIdOf } from '../../../../shared/kernel/ids.ts'
import { canonicalHash } from '../../../../shared/platform/store/idempotency.ts'
import { answerUntilLeft, leaving } from '../../client-gone.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { idempotencyKeyOf } from '../../params.ts'
import type { DialectDeps } from '../dialect.ts'
import type { Fields } from '../shared/fields.ts'
import { readResponse, type Source, streamOf } from '../shared/response-stream.ts'
import { publishedFlow, startFlow } from '../shared/start-flow.ts'
import { type IncomingMessage, inputOf, promptOf, readAnswers, readMessage } from './message.ts'
import { TaskProjection } from './projection.ts'
import { RpcError, type RpcId, rpcAnswer, rpcWire } from './rpc.ts'
import { readTaskId, type TaskRef } from './task-id.ts'

/** One request of a client: `id` is that of JSON-RPC. */
export type Call = { req: Request; res: Response; id: RpcId; params: Fields }

/** `projection` makes the response from `source`, the events of the run from the first one. */
type Opened = { ref: TaskRef; source: Source; projection: TaskProjection }

/** `SendMessage`: answers with the task when it has ended or waits for an answer, or at once. */
export async function sendMessage(deps: DialectDeps, { res, id, ...call }: Call): Promise<void> {
  const configuration = call.params.has('configuration') ? call.params.object('configuration') : undefined
  const isImmediate = configuration?.optionalFlag('returnImmediately') ?? false
  const { ref, source, projection } = await open(deps, { res, id, ...call })
  res.setHeader('X-Run-ID', ref.runId)
  await answerUntilLeft(res, async (signal) => {
    await readResponse(source, projection, { signal, ...(isImmediate && { until: 0 }) })
    return rpcAnswer(id, { result: { task: projection.task } })
  })
}

/** `SendStreamingMessage`: the task, and its updates until it has ended or waits for an answer. */
export async function streamMessage(deps: DialectDeps, call: Call): Promise<void> {
  relayTo(deps, call, await open(deps, call))
}

/** `SubscribeToTask`: the task as it is, and what follows. */
export async function subscribeToTask(deps: DialectDeps, call: Call): Promise<void> {
  const { ref, projection, count } = await readTask(deps, call.res, call.params.text('id'))
  if (projection.isOver) throw ended()
  const frames = await deps.broker.followRun(tenantOf(call.res), ref.runId, 0)
  relayTo(deps, call, {
    ref,
    source: { frames, passed: count + 1 },
    projection: new TaskProjection(ref, { since: count }),
  })
}

/** `GetTask`: the task as far as its run has come. */
export async function getTask(deps: DialectDeps, call: Call): Promise<void> {
  const { projection } = await readTask(deps, call.res, call.params.text('id'))
  call.res.json(rpcAnswer(call.id, { result: projection.task }))
}

/** `CancelTask`: answers with the task when its run has ended. */
export async function cancelTask(deps: DialectDeps, call: Call): Promise<void> {
  const { ref, projection } = await readTask(deps, call.res, call.params.text('id'))
  if (projection.isOver) throw new RpcError('task_not_cancelable', 'the task has ended')
  await deps.broker.cancelRun(tenantOf(call.res), ref.runId)
  const frames = await deps.broker.followRun(tenantOf(call.res), ref.runId, 0)
  const cancelled = new TaskProjection(ref)
  await readResponse({ frames, passed: Number.POSITIVE_INFINITY }, cancelled, { signal: leaving(call.res) })
  call.res.json(rpcAnswer(call.id, { result: cancelled.task }))
}

function relayTo({ relay }: DialectDeps, { res, id }: Call, { ref, source, projection }: Opened): void {
  relay({ runId: ref.runId, ...streamOf(source, projection, rpcWire(id)) }, res)
}

type ReadTask = { ref: TaskRef; projection: TaskProjection; count: number }

/** Makes a task from the events of its run until now, whatever it has waited for in between. The run of a dead process has no number of events. */
async function readTask({ broker }: DialectDeps, res: Response, id: string): Promise<ReadTask> {
  const ref = readTaskId(id)
  const { event_count: count, ended_at: endedAt } = await broker.getRun(tenantOf(res), ref.runId)
  const projection = new TaskProjection(ref)
  const frames = await broker.followRun(tenantOf(res), ref.runId, 0)
  const until = endedAt === null ? count : Number.POSITIVE_INFINITY
  await readResponse({ frames, passed: Number.POSITIVE_INFINITY }, projection, { signal: leaving(res), until })
  return { ref, projection, count }
}

async function open(deps: DialectDeps, call: Call): Promise<Opened> {
  const message = readMessage(call.params)
  if (message.taskId !== undefined) return goOn(deps, call, { ...message, taskId: message.taskId })
  if (message.flow !== undefined) return runFlow(deps, call, { ...message, flow: message.flow })
  const { contextId, messageId } = message
  const key = message.hasContext ? `${contextId} ${messageId}` : idempotencyKeyOf(call.req)
  const sent = { sessionId: contextId, message: { prompt: promptOf(message) }, seed: () => [], key }
  const { runId, frames } = await deps.conversations.send(call.res, 'a2a', sent)
  const ref = { runId, contextId }
  return { ref, source: { frames }, projection: new TaskProjection(ref) }
}

async function runFlow(deps: DialectDeps, call: Call, message: IncomingMessage & { flow: string }): Promise<Opened> {
  const { contextId, messageId, hasContext } = message
  const flow = await publishedFlow(deps, call.res, message.flow)
  const key = hasContext ? canonicalHash(['a2a', contextId, messageId]) : undefined
  const started = await startFlow(deps, call, { flow, input: inputOf(message), key })
  call.res.setHeader('X-Trace-ID', started.traceId)
  const ref = { runId: runIdOf(started.traceId), contextId }
  return { ref, source: { frames: await started.frames() }, projection: new TaskProjection(ref) }
}

/** Answers what a task asks. The response begins behind the pause in which it asked. */
async function goOn(deps: DialectDeps, call: Call, message: IncomingMessage & { taskId: string }): Promise<Opened> {
  const { ref, projection } = await readTask(deps, call.res, message.taskId)
  if (projection.isOver) throw ended()
  if (projection.asked.length === 0)
    throw new RpcError('unsupported_operation', 'the task asks nothing now: send a message with its contextId alone')
  const answers = readAnswers(message, projection.asked)
  await deps.conversations.answer(call.res, ref.contextId, answers)
  const known = new Set(answers.map(({ id }) => id))
  const frames = await deps.broker.followRun(tenantOf(call.res), ref.runId, 0)
  return { ref, source: { frames, known }, projection: new TaskProjection(ref, { since: Number.POSITIVE_INFINITY }) }
}

const ended = () => new RpcError('unsupported_operation', 'the task has ended: send a message with its contextId alone')
