import { type Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Questions } from './elicitation.ts'

/** A connected client, with which several calls work at the same time. */
export class SharedClient {
  readonly #client: Client
  #running = 0
  #isRetired = false

  /** The questions that the server asks during calls. */
  readonly questions: Questions

  constructor(client: Client, questions: Questions) {
    this.#client = client
    this.questions = questions
  }

  get isRetired(): boolean {
    return this.#isRetired
  }

  /** Whether the server keeps a session for this client, which it may lose. */
  get hasSession(): boolean {
    const { transport } = this.#client
    return transport instanceof StreamableHTTPClientTransport && transport.sessionId !== undefined
  }

  get instructions(): string | undefined {
    return this.#client.getInstructions()
  }

  async run<T>(work: (client: Client) => Promise<T>): Promise<T> {
    this.#running += 1
    try {
      return await work(this.#client)
    } finally {
      this.#running -= 1
      await this.#closeWhenUnused()
    }
  }

  /** Closes the client as soon as nothing uses it: a running call may still get its answer. */
  async retire(): Promise<void> {
    this.#isRetired = true
    await this.#closeWhenUnused()
  }

  /** Closes the client now; running calls fail. */
  async close(): Promise<void> {
    this.#isRetired = true
    await this.#client.close()
  }

  async #closeWhenUnused(): Promise<void> {
    if (this.#isRetired && this.#running === 0) await this.#client.close()
  }
}
