import { setTimeout as sleep } from 'node:timers/promises'
import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import { retryUntil } from '../../../kernel/async/retry.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Env } from '../../../platform/config/model.ts'
import type { Tool } from '../port.ts'
import { type McpServerConfig, readMcpConfig } from './config.ts'
import { McpConnection } from './connection.ts'
import { OfferedTools, type ToolChange } from './offered-tools.ts'
import { createToolNames } from './tool-names.ts'

export type McpDeps = {
  /** Path of the MCP_CONFIG file (D1.3). */
  configFile: string
  /** The variables that the file may refer to. */
  variables: Env
  /** The guarded way out, for servers over HTTP. */
  fetch: typeof globalThis.fetch
  /** Gets a line for each server or tool that is left out, and for each that comes back. */
  log: Pick<Log, 'info' | 'warn'>
  /** How long a server may take to start, and then to list its tools. */
  startTimeoutMs: number
  /** Whether servers over stdio may be started; asked only when there are any. They are left out otherwise. */
  mayStartPrograms?: () => Promise<boolean>
  /** The pause before a server that was down is tried again, and between two lists of a server that changes its tools. */
  retryMs?: number
  /** The longest silence within a call; each progress notification starts it again. */
  callTimeoutMs?: number
}

export type McpTools = {
  tools: readonly Tool[]
  /** Calls `apply` when a server that was down at the start can be reached, and when the tools of a server have changed. */
  onChange(apply: (change: ToolChange) => Promise<void> | void): void
  close(): Promise<void>
}

const CALL_TIMEOUT_MS = 60_000
/** The pause before a server that was down is tried again doubles up to the longest. */
const RETRY_MS = 5_000
const MAX_RETRY_MS = 300_000

/**
 * Connects to the servers of MCP_CONFIG and offers their tools as `mcp__<server>__<tool>` (D5.1). A server that cannot be
 * reached is left out, and tried again. A malformed file throws `invalid_request` that names the file and what is wrong with it.
 */
export async function openMcpServers(deps: McpDeps): Promise<McpTools> {
  const { configFile, variables, fetch, log, startTimeoutMs } = deps
  const { callTimeoutMs = CALL_TIMEOUT_MS, retryMs = RETRY_MS } = deps
  const onProblem = (problem: string) => log.warn(problem)
  const configs = await withoutPrograms(await readMcpConfig(configFile, variables), deps)
  const nameOf = createToolNames(configs.map(({ name }) => name))
  const servers = configs.map((config) => {
    const connection = new McpConnection(config, { fetch, startTimeoutMs, onProblem })
    const { name, isTrusted } = config
    const options = { nameOf: (tool: string) => nameOf(name, tool), callTimeoutMs, isTrusted, onProblem }
    return { connection, offered: new OfferedTools(connection, options) }
  })
  const first = await Promise.all(servers.map((server) => orProblem(server, log)))
  const closing = new AbortController()
  return {
    tools: first.flatMap((change) => change?.tools ?? []),
    onChange(apply) {
      servers.forEach((server, i) => void follow(server, { apply, log, retryMs, signal: closing.signal }, !first[i]))
    },
    async close() {
      closing.abort()
      await Promise.all(servers.map(({ connection }) => connection.close()))
    },
  }
}

async function withoutPrograms(
  configs: readonly McpServerConfig[],
  { mayStartPrograms = async () => true }: McpDeps,
): Promise<readonly McpServerConfig[]> {
  const remote = configs.filter((config) => 'url' in config)
  return remote.length === configs.length || (await mayStartPrograms()) ? configs : remote
}

type Server = { connection: McpConnection; offered: OfferedTools }

/** Reports a server that cannot be reached. */
async function orProblem({ connection, offered }: Server, log: McpDeps['log']): Promise<ToolChange | undefined> {
  try {
    return await offered.list()
  } catch (cause) {
    log.warn(`The MCP server ${connection.name} is left out until it can be reached: ${reasonOf(cause)}`)
    return undefined
  }
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : 'unknown reason')

type Following = {
  apply: (change: ToolChange) => Promise<void> | void
  log: McpDeps['log']
  retryMs: number
  signal: AbortSignal
}

/** Tries a server that is missing until it can be reached, and then applies each change of its tools, one after the other. */
async function follow({ connection, offered }: Server, following: Following, isMissing: boolean): Promise<void> {
  const { apply, log, retryMs, signal } = following
  const { name } = connection
  if (isMissing) {
    const change = await listLater(offered, following)
    if (!change) return
    await apply(change)
    log.info(`The MCP server ${name} can be reached now and offers ${countOf(change.tools.length)}.`)
  }
  const update = async () => {
    const change = await offered.list()
    const { tools, gone } = change
    if (signal.aborted || tools.length + gone.length === 0) return
    await apply(change)
    log.info(`The MCP server ${name} offers ${countOf(tools.length)} anew and ${countOf(gone.length)} no longer.`)
  }
  const onFailure = (cause: unknown) => {
    if (!signal.aborted) log.warn(`The changed tools of the MCP server ${name} are not known: ${reasonOf(cause)}`)
  }
  const queue = createKeyedQueue()
  let isWaiting = false
  connection.watchTools(() => {
    if (isWaiting) return // The list that will be read then has this change, too.
    isWaiting = true
    void queue.run(name, async () => {
      isWaiting = false
      await update().catch(onFailure)
      await sleep(retryMs, undefined, { ref: false, signal }).catch(() => {}) // A server may announce changes without end.
    })
  })
}

const countOf = (count: number): string => (count === 1 ? '1 tool' : `${count} tools`)

/** Lists the tools of a server as soon as it answers; why it does not was reported at first. Resolves with nothing when `signal` is aborted. */
async function listLater(offered: OfferedTools, { retryMs, signal }: Following): Promise<ToolChange | undefined> {
  await sleep(retryMs, undefined, { ref: false, signal }).catch(() => {})
  const pauses = [2 * retryMs, MAX_RETRY_MS] as const
  return retryUntil(() => offered.list(), { pauses, signal, ref: false }).catch(() => undefined)
}
