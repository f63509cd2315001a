import { END } from '../../../kernel/async/pull-iterator.ts'
import { type FailedCall, mayBeEmpty } from '../failures/failures.ts'
import type { Failure, ModelPart, ModelRequest } from '../port.ts'
import type { LeftOut, OptionalPart } from '../unsupported-options.ts'
import { type AnswerSource, ChatAnswer } from './answer.ts'
import { ChatExchange, type Endpoint, type ReadResult } from './exchange.ts'
import type { ChatBody, ServerQuirks } from './request.ts'

/** The settings of a provider, which all its calls use. */
export type ChatServer = Omit<FailedCall, 'model'> & {
  endpoint: Endpoint
  quirks: ServerQuirks
  leftOut: LeftOut
  toBody: ChatBody
  framing: AnswerSource['framing']
  /** The failure of every call of a provider whose configuration is wrong; no request is sent then. */
  configFailure: Failure | undefined
}

type Step = IteratorResult<readonly ModelPart[], undefined>
type Exchange = ChatExchange<Step>

/**
 * One model call as an iteration over its parts, the parts of one read of the connection come together. The next bytes are read when the last parts
 * have been taken. Leaving the iteration at any point closes the connection.
 */
export class ChatTurn implements AsyncIterableIterator<readonly ModelPart[], undefined> {
  readonly #server: ChatServer
  readonly #request: ModelRequest
  readonly #signal: AbortSignal
  readonly #call: FailedCall
  readonly #answer: ChatAnswer
  #exchange: Exchange | undefined
  #sent: readonly OptionalPart[] = []
  #isEnding = false

  constructor(server: ChatServer, request: ModelRequest, signal: AbortSignal) {
    const { type, apiKey, instance, quirks, framing } = server
    const { model, stopSequences } = request
    this.#server = server
    this.#request = request
    this.#signal = signal
    this.#call = { type, model, apiKey, instance }
    this.#answer = new ChatAnswer({
      ...{ call: this.#call, quirks, framing, stopSequences },
      mayBeEmpty: mayBeEmpty(request),
    })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Reads until there are parts, or the stream ends. */
  next(): Promise<Step> {
    const { configFailure } = this.#server
    if (this.#answer.isOver || this.#signal.aborted) return this.return()
    if (configFailure) return Promise.resolve({ done: false, value: this.#answer.fail(configFailure) })
    return this.#exchange ? this.#exchange.read() : this.#send()
  }

  async return(): Promise<Step> {
    this.#answer.isOver = true
    this.#exchange?.close()
    return END
  }

  readonly #take = (result: ReadResult): Step | Promise<Step> => {
    const parts = this.#exchange ? this.#partsOf(result, this.#exchange) : []
    return parts.length > 0 && !this.#signal.aborted ? { done: false, value: parts } : this.next()
  }

  /** Returns the parts in the bytes that were read; there may be none. */
  #partsOf(result: ReadResult, exchange: Exchange): readonly ModelPart[] {
    if (result === undefined) return this.#answer.end()
    if (!(result instanceof Uint8Array)) {
      if (this.#answer.isFinished) return this.#answer.end() // An error of the connection no longer matters.
      if (!this.#canSendAgain(result)) return this.#answer.fail(result)
      exchange.close()
      this.#exchange = undefined
      return []
    }
    const parts = this.#answer.read(result)
    if (parts.at(-1)?.type === 'finish') exchange.drain()
    else if (this.#answer.isFinished) this.#expectRest(exchange, parts.length > 0)
    return parts
  }

  /** Starts the time limit for the rest of the response at the finish reason, and again at each later part. */
  #expectRest(exchange: Exchange, hasParts: boolean): void {
    if (!this.#isEnding || hasParts) exchange.expectRest()
    this.#isEnding = true
  }

  /** Whether the server refused an option, so that the request can be sent again without it. */
  #canSendAgain(failure: Failure): boolean {
    return this.#server.leftOut.learn(this.#call.model, failure, this.#sent)
  }

  #send(): Promise<Step> {
    const { endpoint, toBody } = this.#server
    const { json, optionalParts } = toBody(this.#request)
    this.#sent = optionalParts
    const options = { endpoint, call: this.#call, signal: this.#signal, onTold: this.#request.onTold }
    this.#exchange = new ChatExchange(options, this.#take)
    return this.#exchange.send(json)
  }
}
