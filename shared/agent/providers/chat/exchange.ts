import { eventLoop } from '../../../kernel/async/loop-budget.ts'
import { CallWatch } from '../call-watch.ts'
import { classifyFailure, connectionFailure } from '../failures/classify.ts'
import { breachFailure, type FailedCall, unreadableAnswer } from '../failures/failures.ts'
import type { ModelLimits } from '../limits.ts'
import type { Failure, ModelRequest, Send, SendResponse } from '../port.ts'
import { toldLimits } from '../told-limits.ts'

/** Where a provider's requests are sent, and how. */
export type Endpoint = { url: string; headers: Record<string, string>; limits: ModelLimits; send: Send }

const LARGE_BYTES = 8 * 1024

type ExchangeOptions = { endpoint: Endpoint; call: FailedCall; signal: AbortSignal } & Pick<ModelRequest, 'onTold'>

/** The bytes, their end, or why there are none. */
export type ReadResult = Uint8Array | Failure | undefined

/** Sends one request and reads the bytes of its response within the limits. Failures are results, not thrown. */
export class ChatExchange<Taken> {
  readonly #endpoint: Endpoint
  readonly #call: FailedCall
  readonly #onTold: ModelRequest['onTold']
  readonly #watch: CallWatch
  #bytes: AsyncIterator<Uint8Array> | undefined
  readonly #take: (result: ReadResult) => Taken | Promise<Taken>
  #isDraining = false

  /** `take` is called with the result of each read. */
  constructor(
    { endpoint, call, signal, onTold }: ExchangeOptions,
    take: (result: ReadResult) => Taken | Promise<Taken>,
  ) {
    this.#endpoint = endpoint
    this.#call = call
    this.#onTold = onTold
    this.#take = take
    this.#watch = new CallWatch(endpoint.limits, signal)
  }

  /** Sends the request and reads the first bytes of the stream, like `read`. Not async: it would keep the body until the first bytes come. */
  send(body: Uint8Array): Promise<Taken> {
    const { url, headers, send } = this.#endpoint
    return this.#begin(send(url, { method: 'POST', headers, body, signal: this.#watch.signal }))
  }

  async #begin(sent: Promise<SendResponse>): Promise<Taken> {
    const answer = await sent.then((response) => this.#open(response)).catch(this.#toFailure)
    return 'next' in answer ? this.#readNext(answer) : this.#take(answer)
  }

  /**
   * Reads the next bytes of the stream, its end, or the failure, and returns what `take` makes of them. Call it after `send`. Not an async function:
   * most reads bring one event, and this way each read makes one promise.
   */
  read(): Promise<Taken> {
    return this.#bytes ? this.#readNext(this.#bytes) : Promise.resolve(undefined).then(this.#take)
  }

  #readNext(bytes: AsyncIterator<Uint8Array>): Promise<Taken> {
    this.#watch.beginRead()
    return bytes.next().then(this.#accept, this.#fail)
  }

  readonly #accept = ({ done, value }: IteratorResult<Uint8Array>): Taken | Promise<Taken> => {
    if (done) return this.#take(undefined)
    const turn = value.length > LARGE_BYTES ? eventLoop.enter() : undefined // Parsing a large chunk takes a millisecond.
    return turn ? turn.then(() => this.#check(value)) : this.#check(value)
  }

  #check(bytes: Uint8Array): Taken | Promise<Taken> {
    return this.#take(this.#watch.accept(bytes, true) ? bytes : this.#breachFailure())
  }

  readonly #fail = (error: unknown): Taken | Promise<Taken> => this.#take(this.#toFailure(error))

  readonly #toFailure = (error: unknown): Failure => {
    const call = this.#call
    return this.#breachFailure() ?? classifyFailure(error, call) ?? connectionFailure('', call)
  }

  /** Call it when the model has sent its finish reason: the rest gets a short time. */
  expectRest(): void {
    this.#watch.expectRest()
  }

  /** Closes the connection, unless the response was read to its end or is being drained. */
  close(): void {
    if (!this.#isDraining) this.#watch.close()
  }

  /**
   * Call it after the model's last event: reads the response to its end for a short time, so that the connection is reused. The caller's
   * abort is ignored from then on, because a flow aborts its signal as soon as it has its answer.
   */
  drain(): void {
    if (!this.#bytes) return
    this.#isDraining = true
    this.#watch.expectEnd()
    this.#watch.detach()
    void this.#readToEnd(this.#bytes)
  }

  #open(response: SendResponse): AsyncIterator<Uint8Array> | Failure | Promise<Failure> {
    const bytes = response.body[Symbol.asyncIterator]()
    if (response.status < 200 || response.status > 299) return this.#readError(response, bytes)
    this.#onTold?.(toldLimits((name) => response.headers[name]))
    if (isWebPage(response)) this.#watch.end('web_page')
    this.#bytes = bytes
    return this.#breachFailure() ?? bytes
  }

  async #readError({ status, headers }: SendResponse, bytes: AsyncIterator<Uint8Array>): Promise<Failure> {
    const call = this.#call
    const response = { statusCode: status, responseHeaders: headers, responseBody: await this.#readErrorBody(bytes) }
    const error = { ...response, url: this.#endpoint.url }
    return this.#breachFailure() ?? classifyFailure(error, call) ?? unreadableAnswer('bad_answer', call)
  }

  /** Reads an error body as far as possible: when it breaks off, the status and the bytes so far are enough. */
  async #readErrorBody(bytes: AsyncIterator<Uint8Array>): Promise<string> {
    const chunks: Uint8Array[] = []
    try {
      for (;;) {
        this.#watch.beginRead()
        const { done, value } = await bytes.next()
        if (done || !this.#watch.accept(value, false)) break
        chunks.push(value)
      }
    } catch {
      // The error is ignored: the status and the bytes so far are used.
    }
    return new TextDecoder().decode(Buffer.concat(chunks)) // This drops a byte order mark.
  }

  #breachFailure(): Failure | undefined {
    const { breach } = this.#watch
    return breach && breachFailure(breach, this.#call, this.#endpoint.limits)
  }

  async #readToEnd(bytes: AsyncIterator<Uint8Array>): Promise<void> {
    try {
      while (!(await bytes.next()).done);
      this.#watch.release()
    } catch {
      this.#watch.close() // The answer is complete, so an error of the connection no longer matters.
    }
  }
}

const isWebPage = ({ headers }: SendResponse) => String(headers['content-type'] ?? '').startsWith('text/html')
