import type { FailedCall } from '../failures/failures.ts'
import type { Failure, ModelPart, ModelRequest } from '../port.ts'
import { ChatAnswer, type Habits } from './answer.ts'
import { ChatExchange, type Line } from './exchange.ts'
import type { ChatBody } from './request.ts'

export type TurnInput = {
  line: Line
  habits: Habits
  toBody: ChatBody
  call: FailedCall
  request: ModelRequest
  signal: AbortSignal
  /** Why this call cannot be made. */
  refusal?: Failure
}

type Result = IteratorResult<ModelPart, undefined>

const END: Result = { done: true, value: undefined }

/**
 * One model call. The next bytes are asked for when the parts of those before have been taken, so that no more than one chunk
 * stands between the reader and the connection. Leaving the iteration, at whatever point, closes the connection. A class, not
 * a generator: that would cost every delta again.
 */
export class ChatTurn implements AsyncIterableIterator<ModelPart, undefined> {
  readonly #input: TurnInput
  readonly #answer: ChatAnswer
  #exchange: ChatExchange | undefined
  #parts: readonly ModelPart[] = []
  #taken = 0

  constructor(input: TurnInput) {
    this.#input = input
    this.#answer = new ChatAnswer(input.call, input.habits)
  }

  next(): Promise<Result> {
    const part = this.#parts[this.#taken]
    if (part === undefined || this.#input.signal.aborted) return this.#goOn()
    this.#taken++
    return Promise.resolve({ done: false, value: part })
  }

  return(): Promise<Result> {
    this.#parts = []
    this.#answer.isOver = true
    this.#exchange?.leave()
    return Promise.resolve(END)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async #goOn(): Promise<Result> {
    const { signal } = this.#input
    while (!this.#answer.isOver && !signal.aborted) {
      this.#parts = await this.#read()
      this.#taken = 1
      const [part] = this.#parts
      if (part && !signal.aborted) return { done: false, value: part }
    }
    return this.return()
  }

  /** The parts of the next bytes, which may be none. */
  async #read(): Promise<readonly ModelPart[]> {
    const { refusal } = this.#input
    if (refusal) return this.#answer.fail(refusal)
    const exchange = (this.#exchange ??= this.#ask())
    const came = await exchange.read()
    if (came === undefined) return this.#answer.end()
    if (!(came instanceof Uint8Array)) return this.#answer.fail(came)
    const parts = this.#answer.take(came)
    if (parts.at(-1)?.type === 'finish') exchange.part()
    return parts
  }

  #ask(): ChatExchange {
    const { line, call, request, signal, toBody } = this.#input
    return new ChatExchange({ line, call, body: toBody(request), signal })
  }
}
