import { isAbsolute } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { withDeadline } from '../../../kernel/async/deadline.ts'
import { truncate, truncateStart } from '../../../kernel/text.ts'
import type { McpServerConfig } from './config.ts'
import { Questions } from './elicitation.ts'
import { createHttpTransport } from './http.ts'
import { SharedClient } from './shared-client.ts'
import { isFolder, StdioGroupTransport } from './stdio.ts'

/** How long `close` waits for an HTTP server to end the session. */
const TERMINATE_TIMEOUT_MS = 1_000
const MAX_REASON_CHARS = 500
const MAX_STDERR_CHARS = 1_000
const MAX_SKIPPED_CHARS = 200

export type ConnectionOptions = {
  /** The guarded outgoing client, for servers over HTTP. */
  fetch: typeof globalThis.fetch
  /** The working directory of a server over stdio whose entry names no `cwd`. It is created when the server starts. */
  folder: string | undefined
  /** How long a server may take to start, and then to list its tools. */
  startTimeoutMs: number
  /** Called with a sentence for the log when the server ends by itself, or its output has lines that are not messages. */
  onProblem: (problem: string) => void
  onConnected: () => void
  /** Called when the server says that its tools have changed. */
  onToolsChanged: () => void
}

/**
 * The package would check structured outputs with patterns that can take hours. The model reads an output as text in any case.
 */
const NO_OUTPUT_CHECK = {
  getValidator: () => (input: unknown) => ({ valid: true, data: input, errorMessage: undefined }),
} as NonNullable<ClientOptions['jsonSchemaValidator']>

type ServerTransport = StdioGroupTransport | StreamableHTTPClientTransport

/**
 * The connection to one MCP server. It connects at the first use, and again at the next use after the client was retired because
 * the server ended or lost its session. Concurrent uses share one attempt to connect.
 */
export class McpConnection {
  readonly #server: McpServerConfig
  readonly #options: ConnectionOptions
  #client: Promise<SharedClient> | undefined
  /** The newest client that was connected. */
  #connected: SharedClient | undefined
  /** The transport of the newest client, connected or not. */
  #transport: ServerTransport | undefined
  #isClosed = false

  constructor(server: McpServerConfig, options: ConnectionOptions) {
    this.#server = server
    this.#options = options
  }

  get name(): string {
    return this.#server.name
  }

  get startTimeoutMs(): number {
    return this.#options.startTimeoutMs
  }

  /** Whether the next use needs no new connection. A server over HTTP may be gone all the same. */
  get isConnected(): boolean {
    return this.#client !== undefined && this.#connected?.isRetired === false
  }

  /** The process id of a running server over stdio, which leads its process group. */
  get pid(): number | undefined {
    return this.#transport instanceof StdioGroupTransport ? this.#transport.pid : undefined
  }

  /** Ends a process that takes too much memory. The next use starts another one. */
  async endForMemory(maxBytes: number): Promise<void> {
    const limit = Math.round(maxBytes / MEBIBYTE)
    this.#options.onProblem(`The MCP server ${this.name} is ended, because it takes more than ${limit} MB of memory.`)
    await this.#transport?.close()
  }

  /** The connected client. Rejects when the server cannot be reached; the error message is for the operator. */
  client(): Promise<SharedClient> {
    if (this.#isClosed) return Promise.reject(new Error('closed'))
    if (this.#client) return this.#client
    const connecting: Promise<SharedClient> = this.#connect(() => this.#forget(connecting))
    this.#client = connecting
    connecting.catch(() => this.#forget(connecting))
    return connecting
  }

  /** Makes the next use connect again. Running calls may still get their answers. */
  async retire(client: SharedClient): Promise<void> {
    if (this.#connected === client && !client.isRetired) this.#client = undefined
    await client.retire()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const transport = this.#transport
    if (transport instanceof StreamableHTTPClientTransport) {
      // Lets the server free the session now; a server that does not answer frees it by its own timeout.
      await Promise.race([
        transport.terminateSession().catch(() => {}),
        delay(TERMINATE_TIMEOUT_MS, undefined, { ref: false }),
      ])
    }
    await transport?.close()
    // A server that is just being started has no process yet that could be ended.
    const client = await this.#client?.catch(() => undefined)
    await client?.close()
  }

  #forget(client: Promise<SharedClient>): void {
    if (this.#client === client) this.#client = undefined
  }

  async #connect(onEnd: () => void): Promise<SharedClient> {
    const { startTimeoutMs } = this.#options
    const transport = this.#openTransport()
    this.#transport = transport
    const client = new Client({ name: 'agent-engine', version: '1' }, this.#clientOptions())
    if (this.#hasRoots) client.setRequestHandler('roots/list', async () => ({ roots: await this.#roots() }))
    const questions = new Questions(this.name, this.#options.onProblem)
    client.setRequestHandler('elicitation/create', ({ params }) => questions.answer(params))
    const shared = new SharedClient(client, questions)
    let isConnected = false
    const onclose = () => {
      onEnd()
      if (isConnected && !shared.isRetired) this.#reportEnd(transport)
    }
    // Errors of the transport are ignored here: the call that they affect fails.
    Object.assign(client, { onclose, onerror: () => {} })
    try {
      const sdkMs = 2 * startTimeoutMs // Longer than the deadline below, which has the better error message.
      const connecting = client.connect(transport, { timeout: sdkMs, maxTotalTimeout: sdkMs })
      await withDeadline(connecting, startTimeoutMs, () => new Error(`it was not ready within ${startTimeoutMs} ms`))
    } catch (cause) {
      await transport.close()
      throw new Error(this.#reasonOf(cause, transport), { cause })
    }
    isConnected = true
    this.#connected = shared
    this.#options.onConnected()
    return shared
  }

  #clientOptions(): ClientOptions {
    const { protocolVersion } = this.#server
    return {
      capabilities: { elicitation: { form: {}, url: {} }, ...(this.#hasRoots && { roots: {} }) },
      ...(protocolVersion === undefined ? this.#usualVersions() : versionsOf(protocolVersion)),
      jsonSchemaValidator: NO_OUTPUT_CHECK,
      listChanged: { tools: { autoRefresh: false, onChanged: () => this.#options.onToolsChanged() } },
    }
  }

  /** False over HTTP: such a server cannot reach our folders. */
  get #hasRoots(): boolean {
    return 'command' in this.#server && this.#folder !== undefined
  }

  get #folder(): string | undefined {
    return 'command' in this.#server ? (this.#server.cwd ?? this.#options.folder) : undefined
  }

  /** The server's folder, and those in its arguments: some servers open only the roots and ignore their arguments. */
  async #roots(): Promise<{ uri: string }[]> {
    const args = 'command' in this.#server ? this.#server.args.filter((arg) => isAbsolute(arg)) : []
    const isRoot = await Promise.all(args.map(isFolder))
    const folders = new Set([this.#folder ?? '', ...args.filter((_, i) => isRoot[i])])
    return [...folders].map((folder) => ({ uri: pathToFileURL(folder).href }))
  }

  /**
   * The versions to try without a configured one. Over HTTP, negotiating the newest protocol costs one more request. An
   * older stdio server may exit at an unknown request.
   */
  #usualVersions(): ClientOptions {
    return { versionNegotiation: { mode: 'url' in this.#server ? 'auto' : 'legacy' } }
  }

  #openTransport(): ServerTransport {
    const server = this.#server
    if ('url' in server) return createHttpTransport(server, this.#options.fetch)
    return new StdioGroupTransport(server, { ...this.#options, onSkipped: (line) => this.#reportSkipped(line) })
  }

  #reportSkipped(line: string): void {
    const shown = truncate(this.#withoutSecrets(line.trim()), MAX_SKIPPED_CHARS)
    this.#options.onProblem(
      `The MCP server ${this.name} writes lines to its standard output that are no messages. They are skipped: ${shown}`,
    )
  }

  #reasonOf(cause: unknown, transport: ServerTransport): string {
    const messages = [
      ...new Set([cause, rootOf(cause)].map((each) => (each instanceof Error ? each.message : 'unknown reason'))),
    ]
    return `${truncate(this.#withoutSecrets(messages.join(': ')), MAX_REASON_CHARS)}${this.#stderrOf(transport)}`
  }

  /** Only the end of a server over stdio is visible to its client. */
  #reportEnd(transport: ServerTransport): void {
    if (this.#isClosed || !('exit' in transport)) return
    const end = `${transport.exit}${this.#stderrOf(transport)}`
    this.#options.onProblem(`The MCP server ${this.name} ${end}. It is started again when it is called again.`)
  }

  /** The last output of a server over stdio; the reason why it failed is at the end. */
  #stderrOf(transport: ServerTransport): string {
    const text = 'stderr' in transport ? this.#withoutSecrets(transport.stderr) : ''
    if (text === '') return ''
    const end = truncateStart(text, MAX_STDERR_CHARS)
    return `; it wrote: ${end === text ? '' : '…'}${end}`
  }

  /** Hides the values of headers and variables, which may be keys: a server may quote them when it refuses them. */
  #withoutSecrets(text: string): string {
    const parts = this.#server.secrets
      .flatMap((value) => [value, ...value.split(/\s+/)])
      .filter(({ length }) => length >= MIN_SECRET_CHARS)
    const longestFirst = parts.toSorted((a, b) => b.length - a.length)
    return longestFirst.reduce((rest, part) => rest.replaceAll(part, '[redacted]'), text)
  }
}

/** Versions are dates. Those from 2026 on begin with another request. */
const versionsOf = (version: string): ClientOptions =>
  version < '2026'
    ? { versionNegotiation: { mode: 'legacy' }, supportedProtocolVersions: [version] }
    : { versionNegotiation: { mode: { pin: version } } }

const MEBIBYTE = 1024 * 1024

/** The last cause in the chain, such as a refused connection. */
const rootOf = (cause: unknown): unknown => (cause instanceof Error && cause.cause ? rootOf(cause.cause) : cause)

/** A shorter value is not a secret; hiding it would hide ordinary text. */
const MIN_SECRET_CHARS = 4
