import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, Frame, Scenario, Step } from './scenario.ts'

export type Received = { req: IncomingMessage; res: ServerResponse; body: string }

/** How long the play waits for the client's next move. */
const PATIENCE_MS = 20_000

/** One run of a scenario with one client. It says what the client should have done otherwise. */
export class Play {
  readonly runId = `run_${randomUUID().replaceAll('-', '')}`
  readonly problems: string[] = []
  /** Events that were sent and that the client has asked for again. A browser may lose what came right before its connection broke. */
  resent = 0
  /** Settles when the scenario is over. */
  readonly over: Promise<void>
  readonly #scenario: Scenario
  readonly #requests = new Mailbox()
  readonly #replies = new Mailbox()
  #key: string | undefined
  /** The events that were sent, and how many of them the client has said it has. */
  readonly #sent: Frame[] = []
  #confirmed = 0
  #res: ServerResponse | undefined
  #isOver = false

  constructor(scenario: Scenario) {
    this.#scenario = scenario
    this.over = this.#run().then(
      () => this.#end(),
      (cause: unknown) => this.#end(String(cause)),
    )
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether a start belongs to this play. Without a key it does while the play waits for a start: that is a repeated one. */
  takesStart(key: string | undefined): boolean {
    return !this.#isOver && key === this.#key && this.#requests.isAwaited
  }

  receive(received: Received): void {
    if (!this.#isOver) this.#requests.add(received)
    else this.#refuse(received, `a request behind the end: ${received.req.method} ${received.req.url}`)
  }

  receiveReply(received: Received): void {
    if (!this.#isOver) this.#replies.add(received)
    else refuseReply(received)
  }

  #refuse({ res }: Received, problem: string): void {
    this.problems.push(problem)
    res.writeHead(418).end(problem)
  }

  #end(problem?: string): void {
    if (problem !== undefined) this.problems.push(problem)
    this.#isOver = true
    if (problem !== undefined) this.#res?.destroy()
    this.#requests.refuseAll((received) => this.#refuse(received, 'a request behind the end'))
    this.#replies.refuseAll(refuseReply)
  }

  async #run(): Promise<void> {
    for (const step of this.#scenario.steps) await this.#take(step)
  }

  async #take(step: Step): Promise<void> {
    if ('request' in step) await this.#open(step)
    else if ('reply' in step) await this.#answerReply(step.reply)
    else if ('event' in step) await this.#sendFrame(step)
    else if ('raw' in step) await this.#send(step.raw)
    else if ('hex' in step) await this.#send(Buffer.from(step.hex, 'hex'))
    else if ('cut' in step) this.#res?.socket?.destroySoon()
    else if ('end' in step) this.#res?.end()
    else if (this.#res && !this.#res.closed)
      await within(once(this.#res, 'close'), 'the client to leave the silent stream')
  }

  async #open({ request, answer, is_unanswered, is_bare }: Extract<Step, { request: object }>): Promise<void> {
    const { method, path = '', last_event_id: lastEventId = '' } = request
    const { req, res } = await this.#requests.next(`${method} ${path} ${lastEventId}`)
    this.#check(req, request)
    if (answer) return sendAnswer(res, answer)
    this.#res = res
    if (is_unanswered === true) return
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Run-ID': this.runId, 'Cache-Control': 'no-cache' })
    res.socket?.setNoDelay(true)
    if (is_bare !== true) await this.#send(': ok\n')
    for (const frame of this.#sent.slice(this.#confirmed, this.#countTo(lastEventId))) {
      this.resent++
      await this.#send(this.#render(frame))
    }
  }

  /** How many events were sent up to this one: none for none, and -1 for an id that was not sent. */
  #countTo(id: string): number {
    return id === '' || id === '0' ? 0 : this.#sent.findIndex((frame) => String(frame.id) === id) + 1 || -1
  }

  async #sendFrame(frame: Frame): Promise<void> {
    if (this.#countTo(String(frame.id)) < 0) this.#sent.push(frame)
    await this.#send(this.#render(frame))
  }

  #check(
    req: IncomingMessage,
    { method, path = '', last_event_id }: Extract<Step, { request: object }>['request'],
  ): void {
    const { 'last-event-id': lastEventId = '', 'idempotency-key': key } = req.headers
    const { pathname } = new URL(req.url ?? '/', 'http://localhost')
    if (req.method !== method || !pathname.endsWith(path))
      this.problems.push(`expected ${method} ${path}, got ${req.method} ${req.url}`)
    if (last_event_id !== undefined) this.#confirm(String(lastEventId), last_event_id)
    if (req.method !== 'POST') return
    const { idempotency_key } = this.#scenario.head
    if (idempotency_key !== undefined && idempotency_key !== (key !== undefined))
      this.problems.push(`expected ${idempotency_key ? 'an' : 'no'} Idempotency-Key`)
    this.#key = key === undefined ? undefined : String(key)
  }

  /** A client may have less than was sent, and never less than it has had. */
  #confirm(lastEventId: string, sent: string): void {
    const count = this.#countTo(lastEventId)
    if (!(count >= this.#confirmed && count <= this.#countTo(sent)))
      this.problems.push(`expected Last-Event-ID ${sent}, got ${lastEventId}`)
    this.#confirmed = count
  }

  async #answerReply({ id, allow, status }: { id: string; allow: boolean; status: number }): Promise<void> {
    const { req, res, body } = await this.#replies.next(`a reply to ${id}`)
    if (!req.url?.endsWith(`/${id}`)) this.problems.push(`expected a reply to ${id}, got ${req.url}`)
    const given = (JSON.parse(body || '{}') as { allow?: unknown }).allow
    if (given !== allow) this.problems.push(`expected allow ${allow}, got ${String(given)}`)
    if (status === 200) sendAnswer(res, { status, body: { status: 'ok' } })
    else refuseReply({ res }, status)
  }

  #render({ id, event, data }: Frame): string {
    return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`.replaceAll(
      '\n',
      this.#scenario.head.newline ?? '\n',
    )
  }

  async #send(content: string | Buffer): Promise<void> {
    const bytes = Buffer.from(content)
    const size = this.#scenario.head.bytes_at_once ?? bytes.length
    for (let i = 0; i < bytes.length; i += size) {
      const piece = bytes.subarray(i, i + size)
      await new Promise<void>((resolve) => (this.#res?.write(piece, () => resolve()) ?? true) || resolve())
    }
  }
}

/** Behind the end of a run no reply is accepted (D37.2). */
function refuseReply({ res }: Pick<Received, 'res'>, status = 404): void {
  const type = status === 409 ? 'conflict_error' : 'not_found_error'
  sendAnswer(res, { status, body: { error: { type, message: 'too late' } } })
}

function sendAnswer(res: ServerResponse, { status, headers = {}, body }: Answer): void {
  const isText = typeof body === 'string'
  res.writeHead(status, { 'Content-Type': isText ? 'text/html' : 'application/json', ...headers })
  res.end(isText ? body : JSON.stringify(body))
}

/** Requests that the play has not taken yet. */
class Mailbox {
  readonly #waiting: Received[] = []
  #taker: ((received: Received) => void) | undefined

  get isAwaited(): boolean {
    return this.#taker !== undefined
  }

  add(received: Received): void {
    const taker = this.#taker
    this.#taker = undefined
    if (taker) taker(received)
    else this.#waiting.push(received)
  }

  next(what: string): Promise<Received> {
    const first = this.#waiting.shift()
    if (first) return Promise.resolve(first)
    const { promise, resolve } = Promise.withResolvers<Received>()
    this.#taker = resolve
    return within(promise, what)
  }

  refuseAll(refuse: (received: Received) => void): void {
    for (const received of this.#waiting.splice(0)) refuse(received)
  }
}

async function within<T>(promise: Promise<T>, what: string): Promise<T> {
  const timer = new AbortController()
  const late = sleep(PATIENCE_MS, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`waited ${PATIENCE_MS / 1000} s for ${what}`)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    timer.abort()
    late.catch(() => {}) // It was stopped.
  }
}
