import { setTimeout as delay } from 'node:timers/promises'
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { truncate } from '../../text.ts'
import type { McpServerConfig } from './config.ts'
import { StdioGroupTransport } from './stdio.ts'

/** How long `close` waits for an HTTP server to end the session. */
const TERMINATE_TIMEOUT_MS = 1_000
const MAX_REASON_CHARS = 1_000

export type ConnectionOptions = {
  /** The guarded way out, for servers over HTTP. */
  fetch: typeof globalThis.fetch
  connectTimeoutMs: number
}

/**
 * The package would check structured outputs with patterns that can take hours. The model reads an output as text, whatever its form.
 */
const NO_OUTPUT_CHECK = {
  getValidator: () => (input: unknown) => ({ valid: true, data: input, errorMessage: undefined }),
} as NonNullable<ClientOptions['jsonSchemaValidator']>

/**
 * The connection to one MCP server. It connects at the first use, and again at the next use after the client was closed because
 * the server ended or a call failed. Concurrent uses share one attempt to connect.
 */
export class McpConnection {
  readonly #server: McpServerConfig
  readonly #fetch: typeof globalThis.fetch
  readonly #connectTimeoutMs: number
  #client: Promise<Client> | undefined
  #isClosed = false

  constructor(server: McpServerConfig, { fetch, connectTimeoutMs }: ConnectionOptions) {
    this.#server = server
    this.#fetch = fetch
    this.#connectTimeoutMs = connectTimeoutMs
  }

  get name(): string {
    return this.#server.name
  }

  /** The connected client. Rejects when the server cannot be reached; the message is for the operator. */
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
      // Lets the server free the session now; a server that does not answer frees it by its own timeout.
      await Promise.race([
        transport.terminateSession().catch(() => {}),
        delay(TERMINATE_TIMEOUT_MS, undefined, { ref: false }),
      ])
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
      // Over HTTP, negotiating the newest protocol costs one more request. An older stdio server may exit at an unknown request.
      {
        capabilities: {},
        versionNegotiation: { mode: isHttp ? 'auto' : 'legacy' },
        jsonSchemaValidator: NO_OUTPUT_CHECK,
      },
    )
    // Errors of the transport are ignored here: the call that they affect fails.
    Object.assign(client, { onclose: onEnd, onerror: () => {} })
    const transport = this.#transport()
    try {
      await client.connect(transport, { timeout: this.#connectTimeoutMs, maxTotalTimeout: this.#connectTimeoutMs })
      return client
    } catch (cause) {
      await transport.close()
      throw new Error(this.#reasonOf(cause, transport), { cause })
    }
  }

  #transport(): StdioGroupTransport | StreamableHTTPClientTransport {
    const server = this.#server
    if ('url' in server)
      return new StreamableHTTPClientTransport(server.url, {
        fetch: this.#fetch,
        requestInit: { headers: server.headers },
      })
    return new StdioGroupTransport(server)
  }

  #reasonOf(cause: unknown, transport: StdioGroupTransport | StreamableHTTPClientTransport): string {
    const reason = cause instanceof Error ? cause.message : 'unknown reason'
    const stderr = 'stderr' in transport && transport.stderr ? `; it wrote: ${transport.stderr}` : ''
    return truncate(withoutSecrets(`${reason}${stderr}`, this.#server), MAX_REASON_CHARS)
  }
}

/** A shorter value is no secret, and to hide it would hide ordinary text. */
const MIN_SECRET_CHARS = 4

/** Hides the values of headers and variables, which may be keys: a server may quote them when it refuses them. */
function withoutSecrets(text: string, server: McpServerConfig): string {
  const values = Object.values('url' in server ? server.headers : server.env)
  const parts = values
    .flatMap((value) => [value, ...value.split(/\s+/)])
    .filter(({ length }) => length >= MIN_SECRET_CHARS)
  const longestFirst = parts.toSorted((a, b) => b.length - a.length)
  return longestFirst.reduce((rest, part) => rest.replaceAll(part, '[redacted]'), text)
}
