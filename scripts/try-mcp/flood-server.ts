import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'

// An MCP server over stdio, whose tool `flood` writes lines that answer nothing, as fast as they are read, until it is cancelled.

type Request = { id?: number; method: string; params?: { name?: string; arguments?: { text?: string } } }

const LINES = [
  'Listening for requests',
  JSON.stringify({ level: 30, time: 1, msg: 'x'.repeat(200) }),
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }),
]
const CHUNK = `${LINES.join('\n')}\n`.repeat(100)
const PROPERTIES = { text: { type: 'string' } }
const TOOLS = ['flood', 'echo'].map((name) => ({ name, inputSchema: { type: 'object', properties: PROPERTIES } }))
const INITIALIZED = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'flood', version: '1' },
}

let flooding = new AbortController()

/** Each turn lets requests in. */
async function flood({ signal }: AbortController): Promise<void> {
  for (; !signal.aborted; await turn()) if (!process.stdout.write(CHUNK)) await once(process.stdout, 'drain')
}

function resultOf({ method, params }: Request): object {
  if (method === 'initialize') return INITIALIZED
  if (method === 'tools/list') return { tools: TOOLS }
  return { content: [{ type: 'text', text: params?.arguments?.text ?? '' }] }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line) as Request
  const { id, method, params } = request
  if (method === 'notifications/cancelled') flooding.abort()
  if (params?.name === 'flood') void flood((flooding = new AbortController()))
  else if (id !== undefined)
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(request) })}\n`)
})
