import { setTimeout as sleep } from 'node:timers/promises'
import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import type { Log } from '../../../kernel/log.ts'
import type { ServerState } from '../port.ts'
import type { McpServerConfig } from './config.ts'
import type { Instances } from './instances.ts'
import type { OfferedTools, ToolChange } from './offered-tools.ts'

export type ListedServerDeps = {
  instances: Instances
  offered: OfferedTools
  log: Pick<Log, 'info' | 'warn'>
  /** The first pause before a server that is down is tried again (it doubles each time), and the least pause between two lists. */
  retryMs: number
  /** The pause between two lists of a server that announces no changes. */
  listEveryMs: number
  signal: AbortSignal
}

const MAX_RETRY_MS = 300_000

/**
 * The tools of one server, listed repeatedly until the server has answered once; after that every minute, when the server announces changes,
 * after a new connection, and when it did not know one of its tools (D5.2).
 */
export class ListedServer {
  readonly #server: McpServerConfig
  readonly #deps: ListedServerDeps
  readonly #queue = createKeyedQueue()
  #state: ServerState = 'starting'
  #apply: ((change: ToolChange) => Promise<void> | void) | undefined
  #isListing = false
  #isWaiting = false

  constructor(server: McpServerConfig, deps: ListedServerDeps) {
    this.#server = server
    this.#deps = deps
  }

  get name(): string {
    return this.#server.name
  }

  get state(): ServerState {
    return this.#state
  }

  /** The server's instructions for the use of its tools. */
  get instructions(): string | undefined {
    return this.#deps.offered.instructions
  }

  /** Lists the tools for the first time. Resolves with nothing, and a line for the log, when the server cannot be reached. */
  async begin(): Promise<ToolChange | undefined> {
    try {
      return await this.#list(true)
    } catch (cause) {
      this.#warn(`The MCP server ${this.name} is left out until it can be reached: ${reasonOf(cause)}`)
      return undefined
    }
  }

  /** Applies `first` and later changes, one after the other, until the signal is aborted. */
  async follow(first: ToolChange | undefined, apply: (change: ToolChange) => Promise<void> | void): Promise<void> {
    if (!first && !(await this.#beginLater(apply))) return
    this.#apply = apply
    while (await this.#pause(this.#deps.listEveryMs)) this.changed()
  }

  /** Call it when the server was connected, unless its tools are being listed at that moment. */
  connected(): void {
    if (!this.#isListing) this.changed()
  }

  /** Lists the tools again, after a pause when they were listed just now. */
  changed(): void {
    if (this.#isWaiting || !this.#apply) return // The list that is about to be read includes this change.
    this.#isWaiting = true
    void this.#queue.run(this.name, async () => {
      this.#isWaiting = false
      await this.#update().catch((cause: unknown) => this.#fail(cause))
      await this.#pause(this.#deps.retryMs) // A server may announce changes without end.
    })
  }

  async #list(mayStart: boolean): Promise<ToolChange | undefined> {
    this.#isListing = true
    try {
      const change = await this.#deps.instances.list(
        this.#server,
        (connection) => this.#deps.offered.list(connection),
        mayStart,
      )
      if (change) this.#state = 'ready'
      return change
    } catch (cause) {
      if (this.#state === 'starting') this.#state = 'unavailable'
      throw cause
    } finally {
      this.#isListing = false
    }
  }

  async #update(): Promise<void> {
    const { tools, gone } = (await this.#list(false)) ?? { tools: [], gone: [] }
    if (this.#deps.signal.aborted || tools.length + gone.length === 0) return
    await this.#apply?.({ tools, gone })
    this.#deps.log.info(
      `The MCP server ${this.name} offers ${countOf(tools.length)} anew and ${countOf(gone.length)} no longer.`,
    )
  }

  /** Logs one line when the state begins, and no further ones while it lasts. */
  #fail(cause: unknown): void {
    if (this.#state === 'ready')
      this.#warn(`The changed tools of the MCP server ${this.name} are not known: ${reasonOf(cause)}`)
    this.#state = 'unavailable'
  }

  /** Tries the server until it answers. The reason was already logged at the first failure. */
  async #beginLater(apply: (change: ToolChange) => Promise<void> | void): Promise<boolean> {
    for (let pauseMs = this.#deps.retryMs; await this.#pause(pauseMs); pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)) {
      const change = await this.#list(true).catch(() => undefined)
      if (!change || this.#deps.signal.aborted) continue
      await apply(change)
      this.#deps.log.info(`The MCP server ${this.name} can be reached now and offers ${countOf(change.tools.length)}.`)
      return true
    }
    return false
  }

  #warn(problem: string): void {
    if (!this.#deps.signal.aborted) this.#deps.log.warn(problem)
  }

  /** Resolves to false when the servers are closed meanwhile. */
  #pause = (ms: number): Promise<boolean> =>
    sleep(ms, true, { ref: false, signal: this.#deps.signal }).catch(() => false)
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : 'unknown reason')

const countOf = (count: number): string => (count === 1 ? '1 tool' : `${count} tools`)
