import type { Tool as ServerTool } from '@modelcontextprotocol/client'
import { truncate } from '../../text.ts'
import { attempt } from '../attempt.ts'
import type { Tool } from '../port.ts'
import { callTool } from './call.ts'
import { readMcpConfig } from './config.ts'
import { McpConnection } from './connection.ts'
import { createToolNames } from './tool-names.ts'

export type McpDeps = {
  /** Path of the MCP_CONFIG file (D1.3). */
  configFile: string
  /** Called with a sentence for the log for each server or tool that is left out. */
  onProblem: (problem: string) => void
  connectTimeoutMs?: number
  /** The longest silence within a call; each progress notification starts it again. */
  callTimeoutMs?: number
}

export type McpTools = { tools: readonly Tool[]; close: () => Promise<void> }

const CONNECT_TIMEOUT_MS = 15_000
const CALL_TIMEOUT_MS = 60_000
const MAX_LABEL_CHARS = 100
const MAX_DESCRIPTION_CHARS = 4_000
const MAX_SCHEMA_CHARS = 64 * 1024

/**
 * Connects to the servers of MCP_CONFIG and offers their tools as `mcp__<server>__<tool>` (D5.1). A server that cannot be
 * reached is left out. A malformed file throws `invalid_request` that names the file and what is wrong with it.
 */
export async function openMcpServers({ configFile, onProblem, ...timeouts }: McpDeps): Promise<McpTools> {
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, callTimeoutMs = CALL_TIMEOUT_MS } = timeouts
  const servers = await readMcpConfig(configFile)
  const connections = servers.map((server) => new McpConnection(server, connectTimeoutMs))
  const listed = await Promise.all(connections.map((connection) => listTools(connection, onProblem)))
  const nameOf = createToolNames(servers.map(({ name }) => name))
  const tools = listed.flat().map((listedTool) => {
    const name = nameOf(listedTool.connection.name, listedTool.tool.name)
    return createTool(name, listedTool, callTimeoutMs)
  })
  return { tools, close: async () => void (await Promise.all(connections.map((connection) => connection.close()))) }
}

type ListedTool = { connection: McpConnection; tool: ServerTool }

/** Lists the usable tools of one server. Reports a server that cannot be reached and tools whose schema is too large. */
async function listTools(connection: McpConnection, onProblem: McpDeps['onProblem']): Promise<ListedTool[]> {
  try {
    const { tools } = await (await connection.client()).listTools()
    const distinct = [...new Map(tools.map((tool) => [tool.name, tool])).values()]
    for (const { name } of distinct.filter((tool) => !isUsable(tool))) {
      onProblem(`The tool ${name} of the MCP server ${connection.name} is left out: its schema is too large.`)
    }
    return distinct.filter(isUsable).map((tool) => ({ connection, tool }))
  } catch (cause) {
    onProblem(
      `The MCP server ${connection.name} is left out: ${cause instanceof Error ? cause.message : 'unknown reason'}`,
    )
    await connection.close()
    return []
  }
}

const isUsable = ({ inputSchema }: ServerTool): boolean => JSON.stringify(inputSchema).length <= MAX_SCHEMA_CHARS

function createTool(name: string, { connection, tool }: ListedTool, callTimeoutMs: number): Tool {
  const remote = { connection, toolName: tool.name, callTimeoutMs }
  const label = `the tool ${truncate(tool.name, MAX_LABEL_CHARS)} of the MCP server ${truncate(connection.name, MAX_LABEL_CHARS)}`
  const description = tool.description ?? tool.title ?? `Calls ${label}.`
  return {
    name,
    description: truncate(description.toWellFormed(), MAX_DESCRIPTION_CHARS),
    inputSchema: tool.inputSchema,
    defaultPolicy: 'ask',
    isReadOnly: tool.annotations?.readOnlyHint === true,
    describe: () => `Call ${label}.`,
    run: (input, context) => attempt({ subject: name, signal: context.signal }, () => callTool(remote, input, context)),
  }
}
