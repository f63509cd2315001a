import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type HangingTools = {
  readonly url: string
  /** The names of the tools that were called. */
  readonly calls: readonly string[]
  /** Forgets the calls so far. All that come hang. */
  hang(): void
  /** The calls that come from now on are answered. */
  answer(): void
  close(): void
}

type Request = { id?: number; method?: string; params?: { name?: string } }

/** An MCP server whose tools hang until `answer` is called. */
export async function startHangingTools(tools: { name: string; annotations: object }[]): Promise<HangingTools> {
  let [calls, hangs]: [string[], boolean] = [[], true]
  const capabilities = { tools: {} }
  const serverInfo = { name: 'files', version: '1' }
  const results: Record<string, object> = {
    initialize: { protocolVersion: '2025-06-18', capabilities, serverInfo },
    'tools/list': { tools: tools.map((tool) => ({ ...tool, inputSchema: { type: 'object' } })) },
    'tools/call': { content: [{ type: 'text', text: 'answered' }] },
  }
  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    const { id, method = '', params } = JSON.parse((await text(req)) || '{}') as Request
    if (req.method !== 'POST') return res.writeHead(405).end()
    if (id === undefined) return res.writeHead(202).end()
    const result = results[method]
    if (!result) return res.writeHead(404).end()
    if (method === 'tools/call') calls.push(params?.name ?? '')
    if (method === 'tools/call' && hangs) return res
    return res
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }
  const server = createServer((req, res) => void answer(req, res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    get calls() {
      return calls
    },
    hang() {
      ;[calls, hangs] = [[], true]
    },
    answer() {
      hangs = false
    },
    close: () => server.close().closeAllConnections(),
  }
}
