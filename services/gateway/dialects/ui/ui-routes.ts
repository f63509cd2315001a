import type { Request, RequestHandler, Response } from 'express'
import type { MessageRequest, SessionSummary } from '../../../../shared/cluster/commands/sessions.ts'
import { AppError, hasKind, notFound } from '../../../../shared/kernel/errors.ts'
import { canonicalHash } from '../../../../shared/platform/store/idempotency.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { nameIgnored } from '../../bodies/body.ts'
import { answerUntilLeft, endWithClient, type OnDisconnect, onDisconnectOf } from '../../client-gone.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { pathId, queryText, RUN, SESSION } from '../../params.ts'
import { answerHead } from '../../streams/sse.ts'
import type { DialectDeps } from '../dialect.ts'
import { systemPromptOf } from '../shared/caller-context.ts'
import { type Source, streamOf } from '../shared/response-stream.ts'
import { UI_WIRE } from './chunks.ts'
import { newestRun, uiMessages } from './history.ts'
import { readUiRequest } from './request.ts'
import { UiProjection } from './ui-projection.ts'

/** The AI SDK's UI message stream, for `useChat` and other clients of its protocol. The id of a chat is that of its session. */
export function uiRoutes(deps: DialectDeps): RouteTable {
  return {
    '/ui/chat': { post: deps.admitAnswers(chat(deps)) },
    '/ui/chat/:id': { get: read(deps) },
    '/ui/chat/:id/stream': { get: resume(deps), deleteQuery: ['run_id'], delete: stop(deps) },
  }
}

type Answered = Source & { runId: string; chatId: string }

function relayTo(
  res: Response,
  { broker, relay, basePath }: DialectDeps,
  { runId, chatId, onDisconnect, ...source }: Answered & { onDisconnect?: OnDisconnect | undefined },
): void {
  res.setHeader('x-vercel-ai-ui-message-stream', 'v1')
  const stream = streamOf(source, new UiProjection(runId, chatId, basePath), UI_WIRE)
  if (onDisconnect === 'cancel') endWithClient(broker, res, { runId, isOver: stream.isOver })
  relay({ runId, ...stream }, res)
}

function chat(deps: DialectDeps): RequestHandler {
  const { broker, conversations, readBody, checkValue } = deps
  return async (req, res) => {
    const request = readUiRequest(await readBody(req, res, 'DialectRequest'))
    const { chatId, model, answers, outputs, ignored } = request
    nameIgnored(res, ignored)
    const onDisconnect = onDisconnectOf(req)
    if (request.kind === 'answers') {
      const { runId, known } = request
      if (answers.length > 0) await conversations.answer(res, chatId, answers)
      await conversations.answerCalls(
        res,
        outputs.filter((output) => output.runId === runId),
      )
      const frames = await broker.followRun(tenantOf(res), runId, 0)
      const answered = new Set(answers.map(({ id }) => id))
      return relayTo(res, deps, { runId, chatId, frames, known, answered, onDisconnect })
    }
    const { prompt, attachments, listed, again, clientTools, seed } = request
    const own = clientTools && { client_tools: clientTools }
    if (own) await checkValue('SendMessageRequest', { prompt: '-', ...own }, '')
    const system = systemPromptOf(request.system)
    const message = {
      ...{ prompt, ...listed },
      ...(attachments.length > 0 && { attachments }),
      ...(model !== undefined && { model }),
      ...(system !== undefined && { system_prompt: system }),
      ...own,
    }
    const sent = {
      ...{ sessionId: chatId, message, seed },
      key: again === 'always' ? undefined : keyOf(chatId, message),
      again: again === 'ended' ? again : 'failed',
      before: () => conversations.answerWaiting(res, chatId, { answers, outputs }),
    } as const
    const started = await conversations.send(res, 'ui', sent)
    relayTo(res, deps, { ...started, chatId, onDisconnect })
  }
}

/** The messages of the chat, for a page that was opened anew. */
function read({ broker, basePath }: DialectDeps): RequestHandler {
  return async (req, res) => {
    const chatId = pathId(req, 'id', SESSION)
    await answerUntilLeft(res, (signal) => uiMessages({ broker, tenant: tenantOf(res), signal, basePath }, chatId))
  }
}

/** The same message at the same place of a chat is the same request, however often it is sent. */
const keyOf = (chatId: string, message: MessageRequest): string | undefined =>
  message.id === undefined ? undefined : `${chatId} ${message.id} ${canonicalHash(message)}`

type FoundChat = Pick<SessionSummary, 'active_run_id' | 'queued'>

/** The run that answers in the chat now, and the number of those that wait. An unknown chat has none. */
async function findChat({ broker }: Pick<DialectDeps, 'broker'>, req: Request, res: Response): Promise<FoundChat> {
  try {
    return await broker.getSession(tenantOf(res), pathId(req, 'id', SESSION))
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return { active_run_id: null, queued: 0 }
    throw cause
  }
}

/**
 * Sends the newest answer again from its beginning, as `useChat` expects, and continues the stream. A page whose stream was cut has only a part of
 * the answer, so this also works after the run has ended.
 */
function resume(deps: DialectDeps): RequestHandler {
  const { broker } = deps
  return async (req, res) => {
    const runId = await newestRun(broker, tenantOf(res), pathId(req, 'id', SESSION))
    if (runId === undefined) return void res.status(204).end()
    if (req.method === 'HEAD') return answerHead(runId, res)
    const { event_count: passed } = await broker.getRun(tenantOf(res), runId)
    const frames = await broker.followRun(tenantOf(res), runId, 0)
    relayTo(res, deps, { runId, chatId: String(req.params['id']), frames, passed })
  }
}

/** Closing the stream only leaves the run; this cancels the one that the request names, or the only one of the chat. */
function stop(deps: DialectDeps): RequestHandler {
  const { broker } = deps
  return async (req, res) => {
    const runId = (await namedRun(deps, req, res)) ?? (await onlyRun(deps, req, res))
    if (runId !== undefined) await broker.cancelRun(tenantOf(res), runId)
    res.status(204).end()
  }
}

async function namedRun({ broker }: DialectDeps, req: Request, res: Response): Promise<string | undefined> {
  const runId = req.get('X-Run-ID') ?? queryText(req, 'run_id')
  if (runId === undefined) return undefined
  const isRun = RUN.pattern.test(runId)
  const run = isRun ? await broker.getRun(tenantOf(res), runId) : undefined
  if (run?.session_id !== pathId(req, 'id', SESSION)) throw notFound('run_id is the id of no run of this chat')
  return runId
}

/**
 * Without a run's id, the only run of the chat is meant. When further messages wait the request is ambiguous and
 * refused.
 */
async function onlyRun({ broker }: DialectDeps, req: Request, res: Response): Promise<string | undefined> {
  const { active_run_id: runId, queued } = await findChat({ broker }, req, res)
  if (queued === 0) return runId ?? undefined
  throw new AppError(
    'conflict',
    'more than one run of this chat is open: name the one to stop with ?run_id=, by the X-Run-ID of its answer',
  )
}
