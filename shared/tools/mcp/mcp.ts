import { setTimeout as sleep } from 'node:timers/promises'
import { isJsonObject } from '../../json.ts'
import { truncate } from '../../text.ts'
import { attempt } from '../attempt.ts'
import type { Tool } from '../port.ts'
import { callTool } from './call.ts'
import { readMcpConfig } from './config.ts'
import { McpConnection } from './connection.ts'
import { listTools, type ServerTool } from './list-tools.ts'
import { createToolNames } from './tool-names.ts'

export type McpDeps = {
  /** Path of the MCP_CONFIG file (D1.3). */
  configFile: string
  /** The guarded way out, for servers over HTTP. */
  fetch: typeof globalThis.fetch
  /** Called with a sentence for the log for each server or tool that is left out. */
  onProblem: (problem: string) => void
  retryMs?: number
  connectTimeoutMs?: number
  /** The longest silence within a call; each progress notification starts it again. */
  callTimeoutMs?: number
}

export type McpTools = {
  tools: readonly Tool[]
  /** Calls `add` with the tools of a server that was down at the start, once it can be reached. */
  onLate(add: (tools: readonly Tool[]) => Promise<void> | void): void
  close(): Promise<void>
}

const CONNECT_TIMEOUT_MS = 15_000
const CALL_TIMEOUT_MS = 60_000
const MAX_LABEL_CHARS = 100
const MAX_DESCRIPTION_CHARS = 4_000
/** When a server that was down is tried again: the pause doubles up to the longest. */
const RETRY_MS = 5_000
const MAX_RETRY_MS = 300_000

/**
 * Connects to the servers of MCP_CONFIG and offers their tools as `mcp__<server>__<tool>` (D5.1). A server that cannot be
 * reached is left out, and tried again. A malformed file throws `invalid_request` that names the file and what is wrong with it.
 */
export async function openMcpServers({ configFile, fetch, onProblem, ...times }: McpDeps): Promise<McpTools> {
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, callTimeoutMs = CALL_TIMEOUT_MS, retryMs = RETRY_MS } = times
  const servers = await readMcpConfig(configFile)
  const nameOf = createToolNames(servers.map(({ name }) => name))
  const connections = servers.map((server) => new McpConnection(server, { fetch, connectTimeoutMs }))
  const toolsOf = async (connection: McpConnection): Promise<Tool[]> => {
    const listed = await listTools(connection, onProblem)
    return listed.map((tool) => createTool(nameOf(connection.name, tool.name), { connection, tool }, callTimeoutMs))
  }
  const firstTry = await Promise.all(connections.map((each) => orProblem(() => toolsOf(each), each.name, onProblem)))
  const missing = connections.filter((_, i) => !firstTry[i])
  const closing = new AbortController()
  return {
    tools: firstTry.flatMap((tools) => tools ?? []),
    onLate(add) {
      for (const each of missing) void retry(() => toolsOf(each), { retryMs, signal: closing.signal }).then(add)
    },
    async close() {
      closing.abort()
      await Promise.all(connections.map((connection) => connection.close()))
    },
  }
}

/** Reports a server that cannot be reached. */
async function orProblem<T>(
  work: () => Promise<T>,
  name: string,
  onProblem: McpDeps['onProblem'],
): Promise<T | undefined> {
  try {
    return await work()
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'unknown reason'
    onProblem(`The MCP server ${name} is left out until it can be reached: ${reason}`)
    return undefined
  }
}

/** Tries until it succeeds. Resolves with nothing when `signal` is aborted. */
async function retry<T>(
  work: () => Promise<readonly T[]>,
  { retryMs, signal }: { retryMs: number; signal: AbortSignal },
): Promise<readonly T[]> {
  for (let pauseMs = retryMs; ; pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)) {
    await sleep(pauseMs, undefined, { ref: false, signal }).catch(() => {})
    if (signal.aborted) return []
    try {
      return await work()
    } catch {} // It was reported when it failed first.
  }
}

type ListedTool = { connection: McpConnection; tool: ServerTool }

function createTool(name: string, { connection, tool }: ListedTool, callTimeoutMs: number): Tool {
  const remote = { connection, toolName: tool.name, callTimeoutMs }
  const label = `the tool ${truncate(tool.name, MAX_LABEL_CHARS)} of the MCP server ${truncate(connection.name, MAX_LABEL_CHARS)}`
  const description = tool.description ?? tool.title ?? `Calls ${label}.`
  return {
    name,
    description: truncate(description.toWellFormed(), MAX_DESCRIPTION_CHARS),
    inputSchema: tool.inputSchema,
    defaultPolicy: 'ask',
    isReadOnly: isJsonObject(tool.annotations) && tool.annotations['readOnlyHint'] === true,
    describe: () => `Call ${label}.`,
    run: (input, context) => attempt({ subject: name, signal: context.signal }, () => callTool(remote, input, context)),
  }
}
