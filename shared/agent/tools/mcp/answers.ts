import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/client'
import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject, parseJson } from '../../../kernel/json.ts'
import { fitResult } from './fit-result.ts'

const MAY_HAVE_RUN = 'the call may have been carried out'

/** The sentence for a call that was sent but has no answer, so that its effect is unknown (D5.2). */
export const unanswered = (what: string): string => `${what}; ${MAY_HAVE_RUN}`

/** Why a request has no usable answer: a phrase that follows the server's name. */
export class AnswerProblem {
  readonly what: string

  constructor(what: string) {
    this.what = what
  }

  /** The text for a call without an answer. */
  get text(): string {
    return unanswered(this.what)
  }
}

export const MALFORMED = new AnswerProblem('gave an answer that is not valid')
const CUT_OFF = new AnswerProblem('ended its response without an answer')

const MEBIBYTE = 1024 * 1024

/** The problem of an answer above the limit of its transport. */
export const tooLarge = (maxBytes: number): AnswerProblem =>
  new AnswerProblem(`gave an answer above the limit of ${Math.round(maxBytes / MEBIBYTE)} MB`)

const INTERNAL_ERROR = -32_603

/**
 * The requests of a connection that wait for an answer. If the answer is malformed, or cannot come any more, the request is ended
 * at once by an error message with an `AnswerProblem` as its data: the package would wait until its timeout.
 */
export class Answers {
  readonly #deliver: (message: JSONRPCMessage) => void
  /** The methods of the requests, by their ids. */
  readonly #waiting = new Map<number, string>()
  /** The package counts the ids of its requests from 0. */
  #nextId = 0

  constructor(deliver: (message: JSONRPCMessage) => void) {
    this.#deliver = deliver
  }

  /** To be called with each message before it is sent. Returns the id when it is a request. */
  sent(message: JSONRPCMessage): number | undefined {
    if (!('method' in message)) return undefined
    const { method, params } = message
    if (method === 'notifications/cancelled') this.#waiting.delete(Number(params?.['requestId']))
    if (!('id' in message) || typeof message.id !== 'number') return undefined
    this.#waiting.set(message.id, method)
    this.#nextId = message.id + 1
    return message.id
  }

  /** To be called with each message before the package gets it: the result of a call is converted to one that the package accepts. */
  received(message: JSONRPCMessage): void {
    if ('method' in message) return
    const id = Number(message.id)
    const isCall = this.#waiting.get(id) === 'tools/call'
    if (isCall && 'result' in message && !hasContent(message.result)) return this.end(id, MALFORMED)
    if (isCall && 'result' in message && 'content' in message.result) message.result = fitResult(message.result)
    this.#waiting.delete(id)
  }

  /** Reads the text of a response to the request `owner`: the request is ended when the text is no message, or answers another request. */
  read(text: string, owner: number): void {
    const value = parseJson(text)
    const message = toMessage(value)
    if (isJsonObject(value) && 'method' in value) return
    const id = idOf(value)
    if (!message || id !== owner) this.end(this.#waiting.has(id) ? id : owner, MALFORMED)
  }

  /**
   * Reads a line that a server over stdio wrote. Returns `skipped` for one that is no message: many servers print other lines, for
   * debugging, some of them in JSON. A damaged answer ends the request with its id; without a known id it ends the waiting request, if there
   * is only one.
   */
  readLine(line: string): JSONRPCMessage | 'ended' | 'skipped' {
    const text = line.trim()
    const value = text.startsWith('{') ? parseJson(text) : undefined
    if (!isJsonObject(value)) return this.#endOf(idIn(text, text), MALFORMED)
    if (value['jsonrpc'] !== '2.0') return 'skipped'
    const message = toMessage(value)
    if ('method' in value) return message ?? 'skipped'
    const id = idOf(value)
    if (message && id < this.#nextId) return message
    if (!looksLikeAnswer(value)) return 'skipped'
    const [only, ...others] = this.#waiting.keys()
    return this.#endOf(this.#waiting.has(id) || others.length > 0 ? id : only, MALFORMED)
  }

  /** Ends the request that is answered by a line above the limit, of which only the two ends are known. */
  dropLine(start: string, end: string, maxBytes: number): 'ended' | 'skipped' {
    return this.#endOf(idIn(start, end), tooLarge(maxBytes))
  }

  /** Whether an answer to this request can still come. */
  isWaiting(id: number): boolean {
    return this.#waiting.has(id)
  }

  /** To be called when no answer to the request can come any more. Without effect when it has been answered. */
  end(id: number, problem: AnswerProblem = CUT_OFF): void {
    if (!this.#waiting.delete(id)) return
    const error = { code: INTERNAL_ERROR, message: problem.text, data: problem }
    this.#deliver({ jsonrpc: '2.0', id, error })
  }

  #endOf(id: number | undefined, problem: AnswerProblem): 'ended' | 'skipped' {
    if (id === undefined || !this.#waiting.has(id)) return 'skipped'
    this.end(id, problem)
    return 'ended'
  }
}

/** The id of an answer of which only the two ends are known: its members are `jsonrpc`, `id` and the long one, in any order. */
function idIn(start: string, end: string): number | undefined {
  const [head = ''] = start.split(/"(?:result|error)"/)
  if (!/^\s*\{/.test(start) || head.includes('"method"')) return undefined
  const [, first] = /^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d+)\s*,/.exec(start) ?? []
  const [, last] = /,\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(end) ?? []
  const id = first ?? last
  return id === undefined ? undefined : Number(id)
}

const idOf = (value: unknown): number => (isJsonObject(value) ? Number(value['id'] ?? Number.NaN) : Number.NaN)

/** Log lines have other fields: they are not answers, even if they have an id. */
const looksLikeAnswer = (value: JsonObject): boolean =>
  'result' in value || 'error' in value || Object.keys(value).every((name) => name === 'jsonrpc' || name === 'id')

/**
 * Up to the protocol of 2025 the package treats a result without content as empty, so that the server's other fields would be
 * lost. Later results have `resultType`.
 */
const hasContent = (result: object): boolean =>
  ['content', 'structuredContent', 'resultType'].some((field) => field in result)

function toMessage(value: unknown): JSONRPCMessage | undefined {
  try {
    return parseJSONRPCMessage(value)
  } catch {
    return undefined
  }
}
