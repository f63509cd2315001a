import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'

/** What a server that talks nonsense answers to the call of each tool. `$ID` stands for the id of the request, `$LONG` for 11 MB, `$PID` for its process. */
export type RawAnswers = Record<string, string>

type Request = { id?: number; method: string; params?: { name?: string } }

const RESULTS = {
  initialize: {
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'raw', version: '1' },
  },
}

const long = () => 'x'.repeat(11 * 1024 * 1024)

/** The text with which the server answers; `undefined` for a notification. */
function answerTo({ id, method, params }: Request, answers: RawAnswers): string | undefined {
  if (id === undefined) return undefined
  if (method === 'tools/call')
    return (
      answers[params?.name ?? '']
        ?.replaceAll('$ID', String(id))
        .replaceAll('$LONG', long)
        .replaceAll('$PID', String(process.pid)) ?? ''
    )
  const tools = Object.keys(answers).map((name) => ({ name, inputSchema: { type: 'object' } }))
  const result = method === 'tools/list' ? { tools } : RESULTS.initialize
  return JSON.stringify({ jsonrpc: '2.0', id, result })
}

/** Serves over stdio, with the answers in the variable ANSWERS. */
function serveStdio(answers: RawAnswers): void {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const answer = answerTo(JSON.parse(line) as Request, answers)
    if (answer !== undefined) process.stdout.write(`${answer}\n`)
  })
}

export type RawForm = 'json' | 'stream that stays open' | 'stream that ends'

/** Serves over HTTP; a call is answered in the given form. */
export function createRawServer(answers: RawAnswers, form: RawForm) {
  const respond = async (req: IncomingMessage, res: ServerResponse) => {
    const request = JSON.parse((await text(req)) || '{"method": ""}') as Request
    if (req.method !== 'POST') return res.writeHead(405).end()
    if (request.method === 'server/discover') return res.writeHead(404).end()
    const answer = answerTo(request, answers)
    if (answer === undefined) return res.writeHead(202).end()
    if (request.method !== 'tools/call' || form === 'json')
      return res.writeHead(200, { 'content-type': 'application/json' }).end(answer)
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    if (answer !== '') res.write(`data: ${answer.replaceAll('\n', '\ndata: ')}\n\n`)
    return form === 'stream that ends' ? res.end() : res
  }
  return createServer((req, res) => void respond(req, res))
}

if (process.env['ANSWERS'] !== undefined) serveStdio(JSON.parse(process.env['ANSWERS']) as RawAnswers)
