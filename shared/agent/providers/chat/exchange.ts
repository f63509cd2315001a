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

type ExchangeRequest = { endpoint: Endpoint; call: FailedCall; body: Uint8Array; signal: AbortSignal } & Pick<
  ModelRequest,
  'onTold'
>

/** The bytes, their end, or why there are none. */
export type ReadResult = Uint8Array | Failure | undefined

/** Sends one request and reads the bytes of its response within the limits. Failures are results, not thrown. */
export class ChatExchange<Taken> {
  readonly #request: ExchangeRequest
  readonly #watch: CallWatch
  #bytes: AsyncIterator<Uint8Array> | undefined
  readonly #take: (result: ReadResult) => Taken | Promise<Taken>
  #isDraining = false

  /** `take` is called with the result of each read. */
  constructor(request: ExchangeRequest, take: (result: ReadResult) => Taken | Promise<Taken>) {
    this.#request = request
    this.#take = take
    this.#watch = new CallWatch(request.endpoint.limits, request.signal)
  }

  /**
   * Reads the next bytes of the stream, its end, or the failure, and returns what `take` makes of them. The first call sends the request. Not an
   * async function: most reads bring one event, and this way each read makes one promise.
   */
  read(): Promise<Taken> {
    if (!this.#bytes) return this.#readFirst()
    this.#watch.beginRead()
    return this.#bytes.next().then(this.#accept, this.#fail)
  }

  async #readFirst(): Promise<Taken> {
    const sent = await this.#send().catch(this.#toFailure)
    return 'next' in sent ? this.read() : this.#take(sent)
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
    const { call } = this.#request
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

  async #send(): Promise<AsyncIterator<Uint8Array> | Failure> {
    const { endpoint, body, onTold } = this.#request
    const { signal } = this.#watch
    const response = await endpoint.send(endpoint.url, { method: 'POST', headers: endpoint.headers, body, signal })
    const bytes = response.body[Symbol.asyncIterator]()
    if (response.status < 200 || response.status > 299) return this.#readError(response, bytes)
    onTold?.(toldLimits((name) => response.headers[name]))
    if (isWebPage(response)) this.#watch.end('web_page')
    this.#bytes = bytes
    return this.#breachFailure() ?? bytes
  }

  async #readError({ status, headers }: SendResponse, bytes: AsyncIterator<Uint8Array>): Promise<Failure> {
    const { call, endpoint } = this.#request
    const response = { statusCode: status, responseHeaders: headers, responseBody: await this.#readErrorBody(bytes) }
    const error = { ...response, url: endpoint.url }
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
    return breach && breachFailure(breach, this.#request.call, this.#request.endpoint.limits)
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
