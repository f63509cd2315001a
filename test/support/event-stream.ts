import { blocksOf, readBlock } from './sse-blocks.ts'
import { checkStream } from './stream-grammar.ts'

export type Frame = { id: number; event: string; data: Record<string, unknown> }

/** Checks of a test: each may throw. `body` is the text of a refusal. */
export type StreamChecks = { response(response: Response, body?: string): void; frame(frame: Frame): void }

const NO_CHECKS: StreamChecks = { response: () => {}, frame: () => {} }

const FRAME = /^id: (\d+)\nevent: ([a-z_]+)\ndata: (.*)$/

/**
 * Reads one SSE response as a client. It accepts only the exact bytes of D4.2, and checks every stream that ends against the
 * grammar of events.
 */
export class EventStream {
  readonly response: Response
  readonly frames: Frame[] = []
  readonly comments: string[] = []
  readonly #abort: AbortController
  readonly #checks: StreamChecks
  readonly #blocks: AsyncGenerator<string, void, undefined>

  private constructor(response: Response, abort: AbortController, checks: StreamChecks) {
    this.response = response
    this.#checks = checks
    this.#abort = abort
    this.#blocks = blocksOf(response)
  }

  /** Throws when the response is not a stream. */
  static async open(url: string, init: RequestInit = {}, checks = NO_CHECKS): Promise<EventStream> {
    const abort = new AbortController()
    const response = await fetch(url, { ...init, signal: abort.signal })
    const body = response.status === 200 ? undefined : await response.text()
    checks.response(response, body)
    if (body === undefined) return new EventStream(response, abort, checks)
    throw new Error(`no stream: ${response.status} ${body}`)
  }

  get runId(): string {
    return this.response.headers.get('x-run-id') ?? ''
  }

  /** Reads the next frame; `undefined` at the end of the stream, which is then checked. */
  async next(): Promise<Frame | undefined> {
    for (let block = await this.#blocks.next(); !block.done; block = await this.#blocks.next()) {
      const { comments, frame: text } = readBlock(block.value)
      this.comments.push(...comments.map((comment) => comment.replace(/^: /, '')))
      if (text === '') continue
      const [, id, event, data] = FRAME.exec(text) ?? []
      if (!id || !event || !data) throw new Error(`not a frame: ${text}`)
      const frame = { id: Number(id), event, data: JSON.parse(data) as Frame['data'] }
      this.frames.push(frame)
      this.#checks.frame(frame)
      return frame
    }
    checkStream(this.frames, { isRecorded: this.comments.includes('recorded without deltas') })
    return undefined
  }

  /** Reads on to the next frame of this name; throws when the stream ends without one. */
  async until(event: string): Promise<Frame> {
    for (let frame = await this.next(); frame; frame = await this.next()) if (frame.event === event) return frame
    throw new Error(`the stream ended without ${event}: ${this.frames.map((frame) => frame.event).join(' ')}`)
  }

  /** Reads to the end and returns all frames. */
  async all(): Promise<Frame[]> {
    while (await this.next());
    return this.frames
  }

  /** Closes the connection. */
  leave(): void {
    this.#abort.abort()
  }
}
