import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { ResponseBytes } from './response.ts'

/** Sends a request and resolves with the head of its answer, whatever the status; redirects are told, not followed. */
export type Send = (url: string, request: SendRequest) => Promise<SendAnswer>

export type SendRequest = {
  method: 'POST'
  headers: Record<string, string>
  body: string
  /** Aborting it closes the connection, at whatever point, and ends what is awaited in an error. */
  signal: AbortSignal
}

export type SendAnswer = {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** Nothing is read from the connection but on demand, so that a slow reader slows the sender. */
  body: AsyncIterable<Uint8Array>
}

/** How long an idle connection is kept for the next turn; a server that announces less gets less. */
const KEEP_ALIVE_MS = 30_000

/** Sends over connections of its own. It has one limit, for connecting: the others belong to the call, and `CallWatch` keeps them. */
export function createHttpSend({ connectMs }: { connectMs: number }): Send {
  const keeping = { keepAlive: true, timeout: KEEP_ALIVE_MS }
  const agents = { http: new HttpAgent(keeping), https: new HttpsAgent(keeping) }
  return (url, { method, headers, body, signal }) => {
    const { promise, resolve, reject } = Promise.withResolvers<SendAnswer>()
    const isTls = url.startsWith('https:')
    const req = isTls
      ? httpsRequest(url, { method, headers, agent: agents.https })
      : httpRequest(url, { method, headers, agent: agents.http })
    const abort = () => req.destroy()
    signal.addEventListener('abort', abort)
    req.on('socket', (socket) => limitConnecting(socket, isTls, connectMs))
    req.on('response', (res) => resolve(toAnswer(res)))
    req.on('error', reject) // It stays: what goes wrong behind the answer's head is told by the body, too.
    req.on('close', () => signal.removeEventListener('abort', abort))
    req.end(body)
    return promise
  }
}

/** A socket that comes from the pool is connected already. */
function limitConnecting(socket: Socket, isTls: boolean, connectMs: number): void {
  if (!socket.connecting) return
  const timer = setTimeout(() => socket.destroy(new ConnectTimeout()), connectMs)
  const calm = () => clearTimeout(timer)
  socket.once(isTls ? 'secureConnect' : 'connect', calm).once('close', calm)
}

class ConnectTimeout extends Error {
  readonly code = 'ETIMEDOUT'
}

const toAnswer = (res: IncomingMessage): SendAnswer => ({
  status: res.statusCode ?? 0,
  headers: res.headers,
  body: new ResponseBytes(res),
})
