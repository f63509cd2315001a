/** A server over stdio whose tool `book` asks a person for a form, and answers with what it got. */
import { createInterface } from 'node:readline'

type Message = { id?: unknown; method?: string; result?: unknown }

const FORM = {
  type: 'object',
  required: ['seats'],
  properties: { seats: { type: 'integer', minimum: 1 }, window: { type: 'boolean', default: true } },
}
const RESULTS: Record<string, object> = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } },
  'tools/list': { tools: [{ name: 'book', inputSchema: { type: 'object' } }] },
}
const say = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

let asking: unknown
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, result } = JSON.parse(line) as Message
  if (method === undefined) say({ id: asking, result: { content: [{ type: 'text', text: JSON.stringify(result) }] } })
  else if (method === 'tools/call') {
    asking = id
    say({ id: 'q', method: 'elicitation/create', params: { message: 'How many?', requestedSchema: FORM } })
  } else if (id !== undefined) say({ id, result: RESULTS[method] })
})
