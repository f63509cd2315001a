import { CallWatch } from '../call-watch.ts'
import { classifyFailure, connectionFailure, unreadable } from '../failures/classify.ts'
import { breachFailure, type FailedCall } from '../failures/failures.ts'
import type { ModelLimits } from '../limits.ts'
import type { Failure } from '../port.ts'
import type { Send, SendAnswer } from './transport.ts'

/** The way to a server. */
export type Line = { url: string; headers: Record<string, string>; limits: ModelLimits; send: Send }

type Question = { line: Line; call: FailedCall; body: string; signal: AbortSignal }

/** One request and the bytes of its answer, under watch. What goes wrong with it is a value. */
export class ChatExchange {
  readonly #question: Question
  readonly #watch: CallWatch
  #bytes: AsyncIterator<Uint8Array> | undefined
  #isParting = false

  constructor(question: Question) {
    this.#question = question
    this.#watch = new CallWatch(question.line.limits, question.signal)
  }

  /** The next bytes of the stream, `undefined` at its end, or why there are none. */
  async read(): Promise<Uint8Array | Failure | undefined> {
    try {
      return await (this.#bytes ? this.#pull(this.#bytes) : this.#open())
    } catch (error) {
      return (
        this.#breached() ?? classifyFailure(error, this.#question.call) ?? connectionFailure('', this.#question.call)
      )
    }
  }

  /** Closes the connection, unless the answer has been read to its end or is about to end. */
  leave(): void {
    if (!this.#isParting) this.#watch.close()
  }

  /** Everything has been said: the answer may end by itself, so that its connection can be used again, but soon. */
  part(): void {
    if (!this.#bytes) return
    this.#isParting = true
    this.#watch.expectEnd()
    void this.#readOut(this.#bytes)
  }

  async #open(): Promise<Uint8Array | Failure | undefined> {
    const { line, body } = this.#question
    const { signal } = this.#watch
    const answer = await line.send(line.url, { method: 'POST', headers: line.headers, body, signal })
    const bytes = answer.body[Symbol.asyncIterator]()
    if (answer.status < 200 || answer.status > 299) return this.#refused(answer, bytes)
    if (isWebPage(answer)) this.#watch.break('web_page')
    this.#bytes = bytes
    return this.#breached() ?? this.#pull(bytes)
  }

  async #pull(bytes: AsyncIterator<Uint8Array>): Promise<Uint8Array | Failure | undefined> {
    this.#watch.ask()
    const { done, value } = await bytes.next()
    if (done) return undefined
    return this.#watch.take(value, true) ? value : this.#breached()
  }

  async #refused({ status, headers }: SendAnswer, bytes: AsyncIterator<Uint8Array>): Promise<Failure> {
    const refusal = { statusCode: status, responseHeaders: headers, responseBody: await this.#page(bytes) }
    const { call } = this.#question
    return this.#breached() ?? classifyFailure(refusal, call) ?? unreadable('bad_answer', call)
  }

  /** An error's page, as far as it can be had: the status says more than it does. */
  async #page(bytes: AsyncIterator<Uint8Array>): Promise<string> {
    const chunks: Uint8Array[] = []
    try {
      for (;;) {
        this.#watch.ask()
        const { done, value } = await bytes.next()
        if (done || !this.#watch.take(value, false)) break
        chunks.push(value)
      }
    } catch {
      // It broke off.
    }
    return Buffer.concat(chunks).toString()
  }

  #breached(): Failure | undefined {
    const { breach } = this.#watch
    return breach && breachFailure(breach, this.#question.call, this.#question.line.limits)
  }

  async #readOut(bytes: AsyncIterator<Uint8Array>): Promise<void> {
    try {
      while (!(await bytes.next()).done);
    } catch {
      // Nobody waits for it any more.
    } finally {
      this.#watch.close()
    }
  }
}

const isWebPage = ({ headers }: SendAnswer) => String(headers['content-type'] ?? '').startsWith('text/html')
