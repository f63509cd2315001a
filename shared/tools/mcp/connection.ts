import { setTimeout as delay } from 'node:timers/promises'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { clip } from '../clip.ts'
import type { McpServerConfig } from './config.ts'
import { StdioGroupTransport } from './stdio.ts'

const GOODBYE_MS = 1_000

/**
 * The way to one MCP server. Connected at first use, and anew at the next use after the client was closed, by the server's
 * end or by whoever gave it up; many that ask at once share one attempt.
 */
export class McpConnection {
  readonly #server: McpServerConfig
  readonly #connectTimeoutMs: number
  #client: Promise<Client> | undefined
  #isClosed = false

  constructor(server: McpServerConfig, connectTimeoutMs: number) {
    this.#server = server
    this.#connectTimeoutMs = connectTimeoutMs
  }

  get name(): string {
    return this.#server.name
  }

  /** Throws when the server cannot be reached; the message is for the operator. */
  client(): Promise<Client> {
    if (this.#isClosed) return Promise.reject(new Error('closed'))
    if (this.#client) return this.#client
    const connecting: Promise<Client> = this.#connect(() => this.#forget(connecting))
    this.#client = connecting
    connecting.catch(() => this.#forget(connecting))
    return connecting
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const client = await this.#client?.catch(() => undefined)
    if (!client) return
    const { transport } = client
    if (transport instanceof StreamableHTTPClientTransport) {
      // The server may forget the session now; one that does not answer forgets it later.
      await Promise.race([transport.terminateSession().catch(() => {}), delay(GOODBYE_MS, undefined, { ref: false })])
    }
    await client.close()
  }

  #forget(client: Promise<Client>): void {
    if (this.#client === client) this.#client = undefined
  }

  async #connect(onEnd: () => void): Promise<Client> {
    const isHttp = 'url' in this.#server
    const client = new Client(
      { name: 'agent-engine', version: '1' },
      // Over HTTP the newest protocol costs one question more; an older stdio server may end at a question it does not know.
      { capabilities: {}, versionNegotiation: { mode: isHttp ? 'auto' : 'legacy' } },
    )
    // What goes wrong besides reaches the call that fails.
    Object.assign(client, { onclose: onEnd, onerror: () => {} })
    const transport = this.#transport()
    try {
      await client.connect(transport, { timeout: this.#connectTimeoutMs, maxTotalTimeout: this.#connectTimeoutMs })
      return client
    } catch (cause) {
      await transport.close()
      throw new Error(this.#whyNot(cause, transport), { cause })
    }
  }

  #transport(): StdioGroupTransport | StreamableHTTPClientTransport {
    const server = this.#server
    if ('url' in server)
      return new StreamableHTTPClientTransport(server.url, { requestInit: { headers: server.headers } })
    return new StdioGroupTransport(server)
  }

  #whyNot(cause: unknown, transport: StdioGroupTransport | StreamableHTTPClientTransport): string {
    const reason = cause instanceof Error ? cause.message : 'unknown reason'
    const stderr = 'stderr' in transport && transport.stderr ? `; it wrote: ${transport.stderr}` : ''
    return clip(`${reason}${stderr}`, 1_000)
  }
}
