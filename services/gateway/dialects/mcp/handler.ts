import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createMcpHandler } from '@modelcontextprotocol/server'
import type { Request as Incoming, Response as Outgoing } from 'express'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { isJsonObject, withoutLineEnds } from '../../../../shared/kernel/json.ts'
import { leaving } from '../../client-gone.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { SESSION } from '../../params.ts'
import type { DialectDeps } from '../dialect.ts'
import { createFlowServer, giveUp } from './server.ts'
import { SessionCalls } from './session-calls.ts'
import { openToolChanges } from './tool-changes.ts'

type Received = { req: Incoming; res: Outgoing; message: JsonObject }

/** Answers one message of a client. This process keeps no state of it, so another process may answer the next one. */
export async function handleMessage(deps: DialectDeps, { req, res, message }: Received): Promise<void> {
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
function sessionOf(req: Incoming): string | undefined {
  const id = req.get('mcp-session-id')
  return id !== undefined && SESSION.pattern.test(id) ? id : undefined
}

type Cancelling = { sessionId: string; params: unknown }

async function cancelCall(
  deps: DialectDeps & { calls: SessionCalls },
  res: Outgoing,
  { sessionId, params }: Cancelling,
): Promise<void> {
  const requestId = isJsonObject(params) ? params['requestId'] : undefined
  if (typeof requestId !== 'string' && typeof requestId !== 'number') return
  const runId = await deps.calls.cancel(tenantOf(res), { sessionId, requestId })
  if (runId !== undefined) await giveUp(deps, res, runId)
}

/** The request as the SDK takes it, without its body and its credentials, which have been read. */
function toWebRequest(req: Incoming, signal: AbortSignal): Request {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(req.headersDistinct)) {
    if (name !== 'authorization') for (const value of values) headers.append(name, value)
  }
  return new Request('http://gateway/mcp', { method: req.method, headers, signal })
}

/** Sends the SDK's answer, no faster than the client reads it. Resolves when it is sent, or the client has left. */
async function sendWebResponse(response: Response, res: Outgoing, left: AbortSignal): Promise<void> {
  res.status(response.status)
  for (const [name, value] of response.headers) if (name !== 'connection') res.setHeader(name, value)
  if (response.body) res.flushHeaders()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  try {
    for await (const chunk of response.body ?? []) {
      if (!res.write(isStream ? framesOf(chunk) : chunk)) await once(res, 'drain', { signal: left })
    }
  } catch (cause) {
    if (!left.aborted) throw cause
  }
  res.end()
}

/** The SDK writes each frame as one chunk. */
const framesOf = (chunk: Uint8Array): string => withoutLineEnds(Buffer.from(chunk).toString())
