import type { Request, RequestHandler, Response } from 'express'
import type { MessageRequest } from '../../../../shared/cluster/commands/sessions.ts'
import { hasKind } from '../../../../shared/kernel/errors.ts'
import { canonicalHash } from '../../../../shared/platform/store/idempotency.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { answerUntilLeft } from '../../client-gone.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { pathId, SESSION } from '../../params.ts'
import { answerHead } from '../../streams/sse.ts'
import type { DialectDeps } from '../dialect.ts'
import { type Source, streamOf } from '../shared/response-stream.ts'
import { UI_WIRE } from './chunks.ts'
import { uiMessages } from './history.ts'
import { UiProjection } from './projection.ts'
import { readUiRequest } from './request.ts'

/** The AI SDK's UI message stream, for `useChat` and whatever else speaks its protocol. The id of a chat is that of its session. */
export function uiRoutes(deps: DialectDeps): RouteTable {
  return {
    '/ui/chat': { post: deps.admitAnswers(chat(deps)) },
    '/ui/chat/:id': { get: read(deps) },
    '/ui/chat/:id/stream': { get: resume(deps), delete: stop(deps) },
  }
}

type Answered = Source & { runId: string; chatId: string }

function relayTo(res: Response, { relay }: DialectDeps, { runId, chatId, ...source }: Answered): void {
  res.setHeader('x-vercel-ai-ui-message-stream', 'v1')
  relay({ runId, ...streamOf(source, new UiProjection(runId, chatId), UI_WIRE) }, res)
}

function chat(deps: DialectDeps): RequestHandler {
  const { broker, conversations, readBody } = deps
  return async (req, res) => {
    const request = readUiRequest(await readBody(req, res, 'DialectRequest'))
    const { chatId, model } = request
    if (request.kind === 'answers') {
      const { runId, answers, known } = request
      await conversations.answer(res, chatId, answers)
      return relayTo(res, deps, { runId, chatId, frames: await broker.followRun(tenantOf(res), runId, 0), known })
    }
    const { prompt, listed, again, seed } = request
    const message = { prompt, ...(model !== undefined && { model }), ...listed }
    const key = again === 'always' ? undefined : keyOf(chatId, message)
    const sent = { sessionId: chatId, message, key, again: again === 'ended' ? again : 'failed', seed } as const
    const started = await conversations.send(res, 'ui', sent)
    relayTo(res, deps, { ...started, chatId })
  }
}

/** The messages of the chat, for a page that was opened anew. */
function read({ broker }: DialectDeps): RequestHandler {
  return async (req, res) => {
    const chatId = pathId(req, 'id', SESSION)
    await answerUntilLeft(res, (signal) => uiMessages({ broker, tenant: tenantOf(res), signal }, chatId))
  }
}

/** The same message at the same place of a chat is the same request, however often it is sent. */
const keyOf = (chatId: string, message: MessageRequest): string | undefined =>
  message.id === undefined ? undefined : `${chatId} ${message.id} ${canonicalHash(message)}`

/** The run that answers now, or has answered last, as long as its events are kept. */
async function newestRun(deps: DialectDeps, req: Request, res: Response): Promise<string | undefined> {
  const { broker } = deps
  try {
    const summary = await broker.getSession(tenantOf(res), pathId(req, 'id', SESSION))
    const runId = summary.active_run_id ?? summary.last_run_id
    if (runId) await broker.getRun(tenantOf(res), runId)
    return runId ?? undefined
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return undefined
    throw cause
  }
}

/** The run that answers in the chat now; `undefined` when none does, or the chat is unknown. */
async function activeRun({ broker }: DialectDeps, req: Request, res: Response): Promise<string | undefined> {
  try {
    const { active_run_id: runId } = await broker.getSession(tenantOf(res), pathId(req, 'id', SESSION))
    return runId ?? undefined
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return undefined
    throw cause
  }
}

/**
 * Repeats the newest answer from its beginning, as `useChat` expects, and goes on with it. A page whose stream was cut has the half of it, also when the
 * run has ended meanwhile.
 */
function resume(deps: DialectDeps): RequestHandler {
  const { broker } = deps
  return async (req, res) => {
    const runId = await newestRun(deps, req, res)
    if (runId === undefined) return void res.status(204).end()
    if (req.method === 'HEAD') return answerHead(runId, res)
    const { event_count: passed } = await broker.getRun(tenantOf(res), runId)
    const frames = await broker.followRun(tenantOf(res), runId, 0)
    relayTo(res, deps, { runId, chatId: String(req.params['id']), frames, passed })
  }
}

/** Closing the stream only leaves the run; this cancels it. */
function stop(deps: DialectDeps): RequestHandler {
  const { broker } = deps
  return async (req, res) => {
    const runId = await activeRun(deps, req, res)
    if (runId !== undefined) await broker.cancelRun(tenantOf(res), runId)
    res.status(204).end()
  }
}
