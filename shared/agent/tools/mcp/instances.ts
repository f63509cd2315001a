import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { fail, type ToolContext, type ToolOutcome, type ToolOwner } from '../port.ts'
import { groupMemory } from '../process/process-group.ts'
import { type McpServerConfig, type Scope, scopeOf } from './config.ts'
import type { McpConnection } from './connection.ts'

/** The limits for MCP servers that belong to a session or tenant, for each of our processes. */
export type InstanceBounds = {
  max: number
  maxPerTenant: number
  /** A server that was not called for this long is ended. */
  idleMs: number
  /** The most memory of a server over stdio and its child processes; Linux only. Above it the server is ended, even a shared one. */
  maxMemoryBytes: number
}

export type InstancesDeps = {
  bounds: InstanceBounds
  /** The parent folder for servers that work for no session. Left out: they work in the folder of this process. */
  folder: string | undefined
  defaultScope: Scope
  open: (server: McpServerConfig, folder: string | undefined) => McpConnection
}

type Caller = Pick<ToolContext, 'owner' | 'workspace'>

/** One connection to a server, and for a server over stdio one process. Without an owner it is shared. */
type Instance = {
  server: McpServerConfig
  connection: McpConnection
  owner: ToolOwner | undefined
  running: number
  usedAt: number
}

const SWEEP_MS = 10_000

/**
 * The connections to the servers, by owner (D40): each session, plan and other run has its own, or each tenant has, or all share one. They end
 * with their session, plan or run, or when they are idle.
 */
export class Instances {
  readonly #deps: InstancesDeps
  readonly #instances = new Map<string, Instance>()
  /** Connections that are open only to list the tools of a server. */
  readonly #listing = new Set<McpConnection>()
  readonly #timer: NodeJS.Timeout
  #isClosed = false

  constructor(deps: InstancesDeps) {
    this.#deps = deps
    this.#timer = setInterval(() => void this.#sweep(), Math.min(SWEEP_MS, deps.bounds.idleMs)).unref()
  }

  scopeOf(server: McpServerConfig): Scope {
    return scopeOf(server, this.#deps.defaultScope)
  }

  /** Works with the caller's connection. Returns a failed outcome if there is no room for another connection. */
  async use(
    server: McpServerConfig,
    caller: Caller,
    work: (connection: McpConnection) => Promise<ToolOutcome>,
  ): Promise<ToolOutcome> {
    const instance = this.#instanceOf(server, caller)
    if (!instance)
      return fail(`${CROWDED} The MCP server ${server.name} was not called. Try again later, or go on without it.`)
    instance.running += 1
    try {
      return await work(instance.connection)
    } finally {
      instance.running -= 1
      instance.usedAt = performance.now()
    }
  }

  /**
   * Works with a connection to list the server's tools: an open one, the shared one, or a new one for this purpose. `undefined`: no process
   * is running, and `mayStart` is not set.
   */
  async list<T>(server: McpServerConfig, work: (connection: McpConnection) => Promise<T>, mayStart: boolean) {
    const open = [...this.#instances.values()].find((each) => each.server === server && each.connection.isConnected)
    if (open) return work(open.connection)
    if ('command' in server && !mayStart) return undefined
    if (this.scopeOf(server) === 'shared') return work(this.#shared(server).connection)
    const connection = this.#open(server, 'list')
    this.#listing.add(connection)
    try {
      return await work(connection)
    } finally {
      this.#listing.delete(connection)
      await connection.close()
    }
  }

  /** Ends the connections of a session, plan or run that has ended or continues elsewhere. */
  release({ tenant, scope }: ToolOwner): void {
    for (const [key, { owner, server }] of this.#instances)
      if (owner?.tenant === tenant && owner.scope === scope && this.scopeOf(server) === 'session') this.#end(key)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    const connections = [...this.#instances.values()].map(({ connection }) => connection)
    await Promise.all([...connections, ...this.#listing].map((each) => each.close()))
  }

  #instanceOf(server: McpServerConfig, { owner, workspace }: Caller): Instance | undefined {
    const scope = this.scopeOf(server)
    if (scope === 'shared') return this.#shared(server)
    const key = JSON.stringify([server.name, owner.tenant, ...(scope === 'session' ? [workspace] : [])])
    const known = this.#instances.get(key)
    if (known) return known
    if (this.#isClosed || !this.#hasRoom(owner.tenant)) return undefined
    const connection = scope === 'session' ? this.#deps.open(server, workspace) : this.#open(server, owner.tenant)
    return this.#add(key, { server, connection, owner })
  }

  #shared(server: McpServerConfig): Instance {
    const key = JSON.stringify([server.name])
    return (
      this.#instances.get(key) ?? this.#add(key, { server, connection: this.#open(server, 'shared'), owner: undefined })
    )
  }

  #add(key: string, instance: Pick<Instance, 'server' | 'connection' | 'owner'>): Instance {
    const added = { ...instance, running: 0, usedAt: performance.now() }
    this.#instances.set(key, added)
    return added
  }

  /** Opens a connection whose process works in its own folder below ours. */
  #open(server: McpServerConfig, owner: string): McpConnection {
    const { folder, open } = this.#deps
    return open(server, folder && join(folder, nameOf(server.name), nameOf(owner)))
  }

  /** Makes room for another instance of a tenant, by ending the one that was idle for the longest time. */
  #hasRoom(tenant: string): boolean {
    const { max, maxPerTenant } = this.#deps.bounds
    const owned = [...this.#instances].filter(([, { owner }]) => owner !== undefined)
    const ofTenant = owned.filter(([, { owner }]) => owner?.tenant === tenant)
    if (ofTenant.length < maxPerTenant && owned.length < max) return true
    const candidates = ofTenant.length < maxPerTenant ? owned : ofTenant
    const [longest] = candidates
      .filter(([, { running }]) => running === 0)
      .toSorted((a, b) => a[1].usedAt - b[1].usedAt)
    if (longest) this.#end(longest[0])
    return longest !== undefined
  }

  #end(key: string): void {
    const instance = this.#instances.get(key)
    this.#instances.delete(key)
    void instance?.connection.close()
  }

  async #sweep(): Promise<void> {
    const { idleMs, maxMemoryBytes } = this.#deps.bounds
    const now = performance.now()
    for (const [key, { owner, running, usedAt }] of this.#instances)
      if (owner && running === 0 && now - usedAt > idleMs) this.#end(key)
    const processes = [...this.#instances.values()].filter(({ connection }) => connection.pid !== undefined)
    const memory = processes.length === 0 ? undefined : await groupMemory()
    for (const { connection } of processes)
      if ((memory?.get(connection.pid ?? 0) ?? 0) > maxMemoryBytes) void connection.endForMemory(maxMemoryBytes)
  }
}

const CROWDED = 'Too many servers of sessions and tenants are running.'

const nameOf = (text: string): string =>
  /^[\w-]{1,64}$/.test(text) ? text : createHash('sha256').update(text).digest('hex').slice(0, 32)
