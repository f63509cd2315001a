import { randomUUID } from 'node:crypto'
import { createMcpHandler } from '@modelcontextprotocol/server'
import type { Request, Response } from 'express'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { isJsonObject } from '../../../../shared/kernel/json.ts'
import { leaving } from '../../client-gone.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { SESSION } from '../../params.ts'
import type { DialectDeps } from '../dialect.ts'
import { createFlowServer, giveUp } from './server.ts'
import { SessionCalls } from './session-calls.ts'
import { openToolChanges } from './tool-changes.ts'
import { sendWebResponse, toWebRequest } from './web.ts'

type Incoming = { req: Request; res: Response; message: JsonObject }

/** Answers one message of a client. Nothing of it stays in this process, so the next one may go to another. */
export async function handleMessage(deps: DialectDeps, { req, res, message }: Incoming): Promise<void> {
  const { method } = message
  const calls = new SessionCalls(deps.startKeys)
  const sessionId = sessionOf(req)
  if (method === 'notifications/cancelled' && sessionId !== undefined)
    await cancelCall({ ...deps, calls }, res, { sessionId, params: message['params'] })
  const changes =
    method === 'subscriptions/listen' ? await openToolChanges(deps.eventStreams, tenantOf(res)) : undefined
  const handler = createMcpHandler(
    ({ era }) => createFlowServer({ ...deps, calls }, { req, res, sessionId, isLegacy: era === 'legacy' }),
    {
      responseMode: method === 'tools/call' ? 'sse' : 'auto', // A run may take long: comments keep the connection open.
      keepAliveMs: deps.keepaliveMs,
      ...(changes && { bus: changes }),
    },
  )
  changes?.onEnd(() => void handler.close())
  const left = leaving(res)
  const response = await handler.fetch(toWebRequest(req, left), { parsedBody: message })
  changes?.closeUnlessFollowed()
  if (method === 'initialize' && response.ok) response.headers.set('mcp-session-id', randomUUID())
  await sendWebResponse(response, res, left)
}

/** A session is no more than its id, which tells the requests of one client from those of another. */
function sessionOf(req: Request): string | undefined {
  const id = req.get('mcp-session-id')
  return id !== undefined && SESSION.pattern.test(id) ? id : undefined
}

type Cancelling = { sessionId: string; params: unknown }

async function cancelCall(
  deps: DialectDeps & { calls: SessionCalls },
  res: Response,
  { sessionId, params }: Cancelling,
): Promise<void> {
  const requestId = isJsonObject(params) ? params['requestId'] : undefined
  if (typeof requestId !== 'string' && typeof requestId !== 'number') return
  const runId = await deps.calls.cancel(tenantOf(res), { sessionId, requestId })
  if (runId !== undefined) await giveUp(deps, res, runId)
}
