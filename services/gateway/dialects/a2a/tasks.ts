import type { Response } from 'express'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { nameIgnored } from '../../bodies/body.ts'
import { answerUntilLeft, endWithClient, leaving, onDisconnectOf } from '../../client-gone.ts'
import { assertScope, hasScope } from '../../middleware/auth.ts'
import { assertCounted } from '../../middleware/rate-limit.ts'
import type { DialectDeps } from '../dialect.ts'
import { historyLength, withHistory } from './history.ts'
import { readMessage } from './message.ts'
import { type Call, ended, type OpenedTask, type SeenTask } from './opened-task.ts'
import { cancelPlan, readPlan, submitPlan } from './plan-tasks.ts'
import { rpcAnswer } from './rpc.ts'
import { answerTask, cancelRun, readRun, runFlow, sendToSession } from './run-tasks.ts'
import { readTaskId, type TaskRef } from './task-id.ts'

/** `SendMessage`: answers with the task when it has ended or waits for an answer, or at once if the client asks for that. */
export async function sendMessage(deps: DialectDeps, call: Call): Promise<void> {
  const { res, id, params } = call
  const configuration = params.has('configuration') ? params.object('configuration') : undefined
  const isImmediate = configuration?.optionalFlag('returnImmediately') ?? false
  const length = configuration ? (historyLength(configuration) ?? 0) : 0
  const onDisconnect = onDisconnectOf(call.req)
  const { ref, read } = await open(deps, call)
  res.setHeader('X-Run-ID', ref.runId)
  if (onDisconnect === 'cancel' && !isImmediate && !ref.isPlan) endWithClient(deps.broker, res, { runId: ref.runId })
  await answerUntilLeft(res, async (signal) => {
    const task = await read({ signal, isImmediate })
    const shown = length === 0 ? task : await withHistory({ ...(await readTask(deps, res, ref)), task }, length)
    return rpcAnswer(id, { result: { task: shown } })
  })
}

/** `SendStreamingMessage`: the task, and its updates until it has ended or waits for an answer. */
export async function streamMessage(deps: DialectDeps, call: Call): Promise<void> {
  const onDisconnect = onDisconnectOf(call.req)
  const { ref, stream } = await open(deps, call)
  const { isOver, ...streamed } = stream(call.id)
  if (onDisconnect === 'cancel' && !ref.isPlan) endWithClient(deps.broker, call.res, { runId: ref.runId, isOver })
  deps.relay(streamed, call.res)
}

/** `SubscribeToTask`: the task as it is, and its updates from then on. */
export async function subscribeToTask(deps: DialectDeps, call: Call): Promise<void> {
  assertCounted(call.res)
  const { isOver, follow } = await named(deps, call)
  if (isOver) throw ended()
  deps.relay((await follow()).stream(call.id), call.res)
}

/** `GetTask`: the task as far as its run has come. */
export async function getTask(deps: DialectDeps, call: Call): Promise<void> {
  assertCounted(call.res)
  const length = historyLength(call.params)
  const task = await withHistory(await named(deps, call), length)
  call.res.json(rpcAnswer(call.id, { result: task }))
}

/** `CancelTask`: answers with the task when its run has ended; a token that may not read gets its ids and its state. */
export async function cancelTask(deps: DialectDeps, call: Call): Promise<void> {
  const seen = await named(deps, call)
  const cancelled = await (seen.ref.isPlan ? cancelPlan : cancelRun)(deps, call.res, seen)
  const task = await cancelled.read({ signal: leaving(call.res) })
  call.res.json(rpcAnswer(call.id, { result: hasScope(call.res, 'read') ? task : withoutContent(task) }))
}

const withoutContent = ({ id, contextId, status }: JsonObject): JsonObject => ({
  ...{ id, contextId },
  status: { state: (status as JsonObject)['state'] },
})

const named = (deps: DialectDeps, { res, params }: Call): Promise<SeenTask> =>
  readTask(deps, res, readTaskId(params.text('id')))

export const readTask = (deps: DialectDeps, res: Response, ref: TaskRef): Promise<SeenTask> =>
  (ref.isPlan ? readPlan : readRun)(deps, res, ref)

/** A message begins a task, or answers a permission request of one. */
async function open(deps: DialectDeps, call: Call): Promise<OpenedTask> {
  const message = readMessage(call.params)
  nameIgnored(
    call.res,
    [...call.params.unread, ...message.fields.unread].map((pointer) => `/params${pointer}`),
  )
  const { taskId, flow, plan } = message
  if (taskId === undefined) {
    if (plan !== undefined) return submitPlan(deps, call, { ...message, plan })
    return flow === undefined ? sendToSession(deps, call, message) : runFlow(deps, call, { ...message, flow })
  }
  assertScope(call.res, 'approve')
  const seen = await readTask(deps, call.res, readTaskId(taskId))
  if (seen.isOver) throw ended()
  return answerTask(deps, call.res, { message, seen })
}
