import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { createMcpHandler, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { createMemory, createTestServer } from './server.ts'

export type HttpServer = {
  url: string
  /** The headers of all requests so far. */
  requests: Headers[]
  /** Loses its sessions, as a restart does. */
  forget(): void
  close(): Promise<void>
}

type Answer = (request: Request) => Promise<Response>

/** Starts the test server over streamable HTTP: with the newest protocol, which has no sessions, or with the one of 2025, which has. */
export async function startHttpServer({ hasSessions }: { hasSessions: boolean }): Promise<HttpServer> {
  const requests: Headers[] = []
  const { answer, forget } = hasSessions ? withSessions() : withoutSessions()
  const { url, close } = await serveFetch((request) => {
    requests.push(request.headers)
    return answer(request)
  })
  return { url, requests, forget, close }
}

/** Serves answers to the requests of clients. */
export async function serveFetch(answer: Answer): Promise<Pick<HttpServer, 'url' | 'close'>> {
  const server = createServer((req, res) => {
    respond(answer, toRequest(req, res), res).catch(() => res.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function withoutSessions(): { answer: Answer; forget: () => void } {
  const memory = createMemory()
  const { fetch } = createMcpHandler(() => createTestServer(memory))
  return { answer: fetch, forget: () => {} }
}

function withSessions(): { answer: Answer; forget: () => void } {
  const memory = createMemory()
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const open = async () => {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    })
    await createTestServer(memory).connect(transport)
    return transport
  }
  const answer = async (request: Request) => {
    const id = request.headers.get('mcp-session-id')
    const transport = id === null ? await open() : sessions.get(id)
    return transport ? transport.handleRequest(request) : new Response('no such session', { status: 404 })
  }
  return { answer, forget: () => sessions.clear() }
}

function toRequest(req: IncomingMessage, res: ServerResponse): Request {
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  const headers = Object.entries(req.headersDistinct).map(([name, values = []]): [string, string] => [
    name,
    values.join(),
  ])
  const body = req.method === 'POST' ? { body: Readable.toWeb(req) as ReadableStream<Uint8Array>, duplex: 'half' } : {}
  return new Request(`http://${req.headers.host}${req.url}`, {
    method: req.method ?? 'GET',
    headers,
    signal: gone.signal,
    ...body,
  } as RequestInit)
}

async function respond(answer: Answer, request: Request, res: ServerResponse): Promise<void> {
  const response = await answer(request)
  res.writeHead(response.status, Object.fromEntries(response.headers))
  res.flushHeaders()
  if (response.body) await pipeline(Readable.fromWeb(response.body), res)
  else res.end()
}
