import type { RequestHandler, Response } from 'express'
import type { FrameStream } from '../../../../shared/cluster/journal/frame-stream.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { nameIgnored } from '../../bodies/body.ts'
import { endWithClient, onDisconnectOf } from '../../client-gone.ts'
import { hasScope, tenantOf } from '../../middleware/auth.ts'
import type { WaitingRun } from '../../starting/waiting-run.ts'
import type { DialectDeps } from '../dialect.ts'
import { systemPromptOf } from '../shared/caller-context.ts'
import { inPlaces } from '../shared/places.ts'
import { type Source, streamOf } from '../shared/response-stream.ts'
import { newestRun, uiMessages } from '../ui/history.ts'
import { AgUiProjection } from './ag-ui-projection.ts'
import { AG_UI_WIRE } from './events.ts'
import { type AgUiRequest, readAgUiRequest } from './request.ts'
import { threadMessages } from './thread.ts'

/** AG-UI: the id of a thread is that of its session. */
export function agUiRoutes(deps: DialectDeps): RouteTable {
  return { '/ag-ui': { post: deps.admitAnswers(run(deps)) } }
}

function run(deps: DialectDeps): RequestHandler {
  return async (req, res) => {
    const request = readAgUiRequest(await deps.readBody(req, res, 'DialectRequest'))
    nameIgnored(res, request.ignored)
    const onDisconnect = onDisconnectOf(req) ?? 'cancel' // The protocol has no other way to stop a run.
    const { engineRunId: runId, messages, ...source } = await open(deps, res, request)
    const stream = streamOf(source, new AgUiProjection({ ...request, engineRunId: runId, messages }), AG_UI_WIRE)
    if (onDisconnect === 'cancel' && runId !== undefined)
      endWithClient(deps.broker, res, { runId, isOver: stream.isOver })
    deps.relay({ ...(runId !== undefined && { runId }), ...stream }, res)
  }
}

type Opened = Source & { engineRunId: string | undefined; messages?: JsonObject[] }

async function open(deps: DialectDeps, res: Response, request: AgUiRequest): Promise<Opened> {
  const { resumed, threadId } = request
  const shown = request.isOpening && hasScope(res, 'read') ? await show(deps, res, threadId) : undefined
  if (shown) return shown
  const answered = await answerCalls(deps, res, request)
  if (answered && !resumed && !request.hasMessage) return answered
  if (!resumed) return startOrAskAgain(deps, res, request)
  if (request.hasMessage) request.said() // Checks the message first: if it is refused, no answer is recorded.
  await deps.conversations.answer(res, threadId, resumed.answers)
  if (request.hasMessage) return start(deps, res, request)
  const { engineRunId, answers } = resumed
  const frames = await deps.broker.followRun(tenantOf(res), engineRunId, 0)
  return { engineRunId, frames, known: new Set(answers.map(({ id }) => id)) }
}

/**
 * Continues the run with the results of the calls that the client executed; `undefined` when the request contains none. A late
 * result only shows how the run continued.
 */
async function answerCalls(
  { broker, conversations }: DialectDeps,
  res: Response,
  { threadId, results }: AgUiRequest,
): Promise<Opened | undefined> {
  if (results.length === 0) return undefined
  const runId =
    (await conversations.waiting(res, threadId))?.runId ?? (await newestRun(broker, tenantOf(res), threadId))
  if (runId === undefined) return undefined
  await conversations.answerCalls(
    res,
    results.map((result) => ({ ...result, runId })),
  )
  const frames = await broker.followRun(tenantOf(res), runId, 0)
  return { engineRunId: runId, frames, known: new Set(results.map(({ toolUseId }) => toolUseId)) }
}

/**
 * Opens the thread for a client that has none of its messages: sends the earlier messages, then repeats the newest run, which may
 * still be running. `undefined` for an empty thread.
 */
async function show({ broker, basePath }: DialectDeps, res: Response, threadId: string): Promise<Opened | undefined> {
  const tenant = tenantOf(res)
  const shown = await uiMessages({ broker, tenant, basePath, signal: new AbortController().signal }, threadId)
  const engineRunId = await newestRun(broker, tenant, threadId)
  if (shown.length === 0 && engineRunId === undefined) return undefined
  if (engineRunId === undefined) return { engineRunId, frames: NO_FRAMES, messages: threadMessages(shown) }
  const { event_count: passed } = await broker.getRun(tenant, engineRunId)
  const frames = await broker.followRun(tenant, engineRunId, 0)
  const messages = threadMessages(shown.filter(({ id }) => id !== engineRunId))
  return { engineRunId, frames, passed, messages }
}

const NO_FRAMES: FrameStream = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
}

/** AG-UI's contract: a thread with open interrupts takes nothing but answers to them. A client that has lost the interrupts receives them again. */
async function startOrAskAgain(deps: DialectDeps, res: Response, request: AgUiRequest): Promise<Opened> {
  let waiting: WaitingRun | undefined
  const before = async () => {
    waiting = await deps.conversations.waiting(res, request.threadId)
    const isInterrupted = waiting && (waiting.permissionIds.length > 0 || !request.hasMessage)
    if (isInterrupted) throw new Error('the thread has open interrupts')
    waiting = undefined // A message ends the wait for the client's calls (D39.1).
  }
  try {
    if (!request.hasMessage) await before()
    return await start(deps, res, request, before)
  } catch (cause) {
    if (!waiting) throw cause
    const { runId: engineRunId, eventCount } = waiting
    const frames = await deps.broker.followRun(tenantOf(res), engineRunId, 0)
    return { engineRunId, frames, silentUntil: eventCount }
  }
}

async function start(
  { conversations, checkValue }: DialectDeps,
  res: Response,
  { threadId, runId, said, context, clientTools }: AgUiRequest,
  before?: () => Promise<void>,
): Promise<Opened> {
  const { prompt, attachments, system: instructions, listed, unanswered, seed } = said()
  await inPlaces({ client_tools: '/tools' }, () =>
    checkValue('SendMessageRequest', { prompt: '-', client_tools: clientTools }, ''),
  )
  const system = systemPromptOf(instructions, context)
  const message = {
    ...{ prompt, ...listed },
    client_tools: clientTools, // The client's tools of this request replace those of earlier ones.
    ...(attachments.length > 0 && { attachments }),
    ...(system !== undefined && { system_prompt: system }),
  }
  const sent = {
    sessionId: threadId,
    message,
    unanswered,
    seed,
    key: `${threadId} ${runId}`,
    ...(before && { before }),
  }
  const send = () => conversations.send(res, 'ag-ui', sent)
  const started = await inPlaces({ client_tools: '/tools' }, send)
  return { engineRunId: started.runId, frames: started.frames }
}
