import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { anthropic } from './anthropic.ts'
import { google } from './google.ts'
import { type HistoryEntry, historyOf, lastAskedOf, promptOf, resultsOf } from './history.ts'
import { ollama } from './ollama.ts'
import { openaiChat } from './openai-chat.ts'
import { openaiResponses } from './openai-responses.ts'
import type { Call, Format, Json, Wire } from './wire.ts'

/** A request as it was received. */
export type Received = {
  format: Format
  /** The request is for the list of models, which takes no answer from the queue. */
  listsModels: boolean
  path: string
  method: string
  headers: IncomingHttpHeaders
  body: Json
  model: string
  streamed: boolean
  /** The text of the last message if it is the user's, else empty. */
  prompt: string
  /** The text of the user's last message, also when tool results follow it. */
  lastAsked: string
  /** The tool results at the end of the conversation. */
  results: { id: string; text: string }[]
  /** `performance.now()` at the arrival. */
  at: number
  /** The client closed the connection before it had the whole answer. */
  readonly closed: boolean
  /** Resolves when `closed` becomes true. Never resolves for an answer that was delivered, or that this server broke off. */
  closedByClient: Promise<void>
}

export type Route = { path: string; wire: Wire; listsModels: boolean }

const MODELS: [path: RegExp, wire: Wire][] = [
  [/\/chat\/completions$/, openaiChat],
  [/\/responses$/, openaiResponses],
  [/\/messages$/, anthropic],
  [/\/api\/chat$/, ollama],
  [/\/models\/[^/]+:(?:streamG|g)enerateContent$/, google],
]

/** Finds the wire format of a request by the end of its path, because base URLs differ. */
export function routeOf({ url = '/', method, headers }: IncomingMessage): Route | undefined {
  const path = new URL(url, 'http://model').pathname
  const model = MODELS.find(([pattern]) => pattern.test(path))
  if (method === 'POST' && model) return { path, wire: model[1], listsModels: false }
  if (method !== 'GET' || !path.endsWith('/models')) return undefined
  if ('anthropic-version' in headers) return { path, wire: anthropic, listsModels: true }
  return { path, wire: path.endsWith('/v1beta/models') ? google : openaiChat, listsModels: true }
}

export type Incoming = { call: Call; history: HistoryEntry[]; facts: Omit<Received, 'closed' | 'closedByClient'> }

/** Reads a request to its end. Throws a `SyntaxError` when its body is not JSON. */
export async function read(req: IncomingMessage, { path, wire, listsModels }: Route): Promise<Incoming> {
  const raw = await readText(req)
  const body: Json = raw === '' ? {} : JSON.parse(raw)
  const [, pathModel, action] = /\/models\/([^/:]+):(\w+)$/.exec(path) ?? []
  const model = pathModel ?? (typeof body['model'] === 'string' ? body['model'] : '')
  const history = historyOf(wire.format, body)
  const usage = { input: Math.ceil(raw.length / 4), output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }
  const createdSecs = Math.floor(Date.now() / 1000)
  return {
    call: { id: randomBytes(12).toString('hex'), model, createdSecs, body, usage, opensWith: 'text' },
    history,
    facts: {
      format: wire.format,
      listsModels,
      path,
      method: req.method ?? '',
      headers: req.headers,
      body,
      model,
      streamed: body['stream'] === true || action === 'streamGenerateContent',
      prompt: promptOf(history),
      lastAsked: lastAskedOf(history),
      results: resultsOf(history).map(({ id, text }) => ({ id, text })),
      at: performance.now(),
    },
  }
}
