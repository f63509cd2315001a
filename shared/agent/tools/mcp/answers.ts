import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/client'
import { isJsonObject } from '../../../kernel/json.ts'
import { fitResult } from './fit-result.ts'

/** Why a request has no answer that can be used. The text follows the name of the server. */
export class AnswerProblem {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export const MALFORMED = new AnswerProblem('gave an answer that is not valid; the call may have been carried out')
const CUT_OFF = new AnswerProblem('ended its response without an answer; the call may have been carried out')

const INTERNAL_ERROR = -32_603

/**
 * The requests of a connection that wait for an answer. One whose answer is malformed, or cannot come any more, is ended at once by
 * an error message with an `AnswerProblem` as its data: the package would let it wait for its time limit.
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

  /** To be called with each message before the package gets it: the result of a call is made one that it takes. */
  received(message: JSONRPCMessage): void {
    if ('method' in message) return
    const id = Number(message.id)
    const isCall = this.#waiting.get(id) === 'tools/call'
    if (isCall && 'result' in message && !hasContent(message.result)) return this.#end(id, MALFORMED)
    if (isCall && 'result' in message && 'content' in message.result) message.result = fitResult(message.result)
    this.#waiting.delete(id)
  }

  /** Reads a text in which one message is wanted. `owner`: the request to which the server sent it, where that is known. */
  read(text: string, owner?: number): JSONRPCMessage | undefined {
    const value = parse(text)
    if (value === undefined) {
      // Many servers print other lines, for debugging.
      if (owner !== undefined || text.includes('"jsonrpc"')) this.#end(owner, MALFORMED)
      return undefined
    }
    const message = toMessage(value)
    if (isJsonObject(value) && 'method' in value) return message
    const id = isJsonObject(value) ? Number(value['id'] ?? Number.NaN) : Number.NaN
    if (message && (owner === undefined ? id < this.#nextId : id === owner)) return message
    this.#end(this.#waiting.has(id) ? id : owner, MALFORMED)
    return undefined
  }

  /** To be called when no answer to the request can come any more. Without effect when it has been answered. */
  cutOff(id: number): void {
    if (this.#waiting.has(id)) this.#end(id, CUT_OFF)
  }

  /** Ends the request, or all that wait when it is not known which one the server meant. */
  #end(id: number | undefined, problem: AnswerProblem): void {
    const ids = id === undefined ? [...this.#waiting.keys()] : [id]
    for (const each of ids) {
      this.#waiting.delete(each)
      const error = { code: INTERNAL_ERROR, message: problem.text, data: problem }
      this.#deliver({ jsonrpc: '2.0', id: each, error })
    }
  }
}

/**
 * Up to the protocol of 2025 the package takes a result without content for an empty one, and what the server said in other fields
 * would be lost. Later results have `resultType`.
 */
const hasContent = (result: object): boolean =>
  ['content', 'structuredContent', 'resultType'].some((field) => field in result)

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function toMessage(value: unknown): JSONRPCMessage | undefined {
  try {
    return parseJSONRPCMessage(value)
  } catch {
    return undefined
  }
}
