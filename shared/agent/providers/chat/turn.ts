import type { FailedCall } from '../failures/failures.ts'
import type { Failure, ModelPart, ModelRequest } from '../port.ts'
import type { LeftOut, OptionalPart } from '../unsupported-options.ts'
import { type AnswerSource, ChatAnswer } from './answer.ts'
import { ChatExchange, type Endpoint } from './exchange.ts'
import type { ChatBody, ServerQuirks } from './request.ts'

export type TurnInput = {
  endpoint: Endpoint
  quirks: ServerQuirks
  leftOut: LeftOut
  toBody: ChatBody
  framing: AnswerSource['framing']
  call: FailedCall
  request: ModelRequest
  signal: AbortSignal
  /** The failure of every call of a provider whose configuration is wrong; no request is sent then. */
  configFailure: Failure | undefined
}

type Result = IteratorResult<ModelPart, undefined>

const END: Result = { done: true, value: undefined }

/**
 * One model call as an iteration over its parts. The next bytes are read when all parts of the last ones have been taken, so at
 * most one chunk is buffered here. Leaving the iteration at any point closes the connection. A class and not a generator,
 * because a generator costs more CPU for every delta.
 */
export class ChatTurn implements AsyncIterableIterator<ModelPart, undefined> {
  readonly #input: TurnInput
  readonly #answer: ChatAnswer
  #exchange: ChatExchange | undefined
  #sent: readonly OptionalPart[] = []
  #parts: readonly ModelPart[] = []
  #takenCount = 0

  constructor(input: TurnInput) {
    this.#input = input
    const { call, quirks, framing, request } = input
    this.#answer = new ChatAnswer({ call, quirks, framing, stopSequences: request.stopSequences })
  }

  next(): Promise<Result> {
    const part = this.#parts[this.#takenCount]
    if (part === undefined || this.#input.signal.aborted) return this.#readOn()
    this.#takenCount++
    return Promise.resolve({ done: false, value: part })
  }

  return(): Promise<Result> {
    this.#parts = []
    this.#answer.isOver = true
    this.#exchange?.close()
    return Promise.resolve(END)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Reads until there is a part, or ends the iteration. */
  async #readOn(): Promise<Result> {
    const { signal } = this.#input
    while (!this.#answer.isOver && !signal.aborted) {
      this.#parts = await this.#readParts()
      this.#takenCount = 1
      const [part] = this.#parts
      if (part && !signal.aborted) return { done: false, value: part }
    }
    return this.return()
  }

  /** Returns the parts of the next bytes, of which there may be none. */
  async #readParts(): Promise<readonly ModelPart[]> {
    const { configFailure } = this.#input
    if (configFailure) return this.#answer.fail(configFailure)
    const exchange = (this.#exchange ??= this.#startExchange())
    const result = await exchange.read()
    if (result === undefined) return this.#answer.end()
    if (!(result instanceof Uint8Array)) {
      if (!this.#canSendAgain(result)) return this.#answer.fail(result)
      exchange.close()
      this.#exchange = undefined
      return []
    }
    const parts = this.#answer.read(result)
    if (parts.at(-1)?.type === 'finish') exchange.drain()
    return parts
  }

  /** Whether the server refused an option, without which the request can be sent again. */
  #canSendAgain(failure: Failure): boolean {
    const { leftOut, request } = this.#input
    return leftOut.learn(request.model, failure, this.#sent)
  }

  #startExchange(): ChatExchange {
    const { endpoint, call, request, signal, toBody } = this.#input
    const { json: body, optionalParts } = toBody(request)
    this.#sent = optionalParts
    return new ChatExchange({ endpoint, call, body, signal })
  }
}
