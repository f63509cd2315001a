import { createHash } from 'node:crypto'
import {
  type Client,
  ProtocolError,
  type RequestOptions,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Tool as ServerTool,
} from '@modelcontextprotocol/client'
import type { JsonObject } from '../../events.ts'
import { attempt } from '../attempt.ts'
import { clip } from '../clip.ts'
import { fail, type Tool, type ToolContext, type ToolOutcome } from '../port.ts'
import { MCP_PREFIX } from '../registry.ts'
import { toOutcome } from './call.ts'
import { readMcpConfig } from './config.ts'
import { McpConnection } from './connection.ts'

export type McpDeps = {
  /** MCP_CONFIG (D1.3). */
  configFile: string
  /** Told in a sentence, for the log, of a server or tool that is left out. */
  onProblem: (problem: string) => void
  connectTimeoutMs?: number
  /** The longest silence within a call; each progress notification starts it anew. */
  callTimeoutMs?: number
}

export type McpTools = { tools: readonly Tool[]; close: () => Promise<void> }

const CONNECT_TIMEOUT_MS = 15_000
const CALL_TIMEOUT_MS = 60_000
const CALL_TOTAL_MS = 600_000
const MAX_NAME = 64
const MAX_DESCRIPTION = 4_000
const MAX_SCHEMA_CHARS = 64 * 1024
const MAX_PROGRESS = 500
const MAX_REFUSAL = 2_000

/**
 * Connects to the servers of MCP_CONFIG and offers their tools as `mcp__<server>__<tool>` (D5.1). A server that cannot be
 * reached is left out; a malformed file throws `invalid_request` that names the file and what is wrong with it.
 */
export async function openMcpServers({ configFile, onProblem, ...timeouts }: McpDeps): Promise<McpTools> {
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, callTimeoutMs = CALL_TIMEOUT_MS } = timeouts
  const servers = await readMcpConfig(configFile)
  const connections = servers.map((server) => new McpConnection(server, connectTimeoutMs))
  const offers = await Promise.all(connections.map((connection) => offersOf(connection, onProblem)))
  const names = new Set<string>()
  const tools = offers.flat().map((offer) => {
    const name = toolName(offer.connection.name, offer.tool.name, names)
    return toTool({ ...offer, name, callTimeoutMs })
  })
  return { tools, close: async () => void (await Promise.all(connections.map((connection) => connection.close()))) }
}

type Offer = { connection: McpConnection; tool: ServerTool }

async function offersOf(connection: McpConnection, onProblem: McpDeps['onProblem']): Promise<Offer[]> {
  try {
    const { tools } = await (await connection.client()).listTools()
    const distinct = [...new Map(tools.map((tool) => [tool.name, tool])).values()]
    for (const { name } of distinct.filter((tool) => !isOfferable(tool))) {
      onProblem(`The tool ${name} of the MCP server ${connection.name} is left out: its schema is too large.`)
    }
    return distinct.filter(isOfferable).map((tool) => ({ connection, tool }))
  } catch (cause) {
    onProblem(
      `The MCP server ${connection.name} is left out: ${cause instanceof Error ? cause.message : 'unknown reason'}`,
    )
    await connection.close()
    return []
  }
}

const isOfferable = ({ inputSchema }: ServerTool): boolean => JSON.stringify(inputSchema).length <= MAX_SCHEMA_CHARS

/** A name every model API takes, `[A-Za-z0-9_-]{1,64}`. One that had to be changed beyond doubt carries a hash of the original. */
function toolName(server: string, tool: string, taken: Set<string>): string {
  const plain = `${MCP_PREFIX}${server}__${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, '_')
  const hash = createHash('sha256')
    .update(JSON.stringify([server, tool]))
    .digest('hex')
    .slice(0, 8)
  const name = plain.length <= MAX_NAME && !taken.has(plain) ? plain : `${plain.slice(0, MAX_NAME - 9)}_${hash}`
  taken.add(name)
  return name
}

type McpTool = Offer & { name: string; callTimeoutMs: number }

function toTool(offer: McpTool): Tool {
  const { name, tool, connection } = offer
  const label = `the tool ${clip(tool.name, 100)} of the MCP server ${clip(connection.name, 100)}`
  return {
    name,
    description: clip((tool.description ?? tool.title ?? `Calls ${label}.`).toWellFormed(), MAX_DESCRIPTION),
    inputSchema: tool.inputSchema,
    defaultPolicy: 'ask',
    describe: () => `Call ${label}.`,
    run: (input, context) => attempt({ subject: name, signal: context.signal }, () => call(offer, input, context)),
  }
}

/** One call, made again only when the server surely has not seen it: the connection was gone, or the session forgotten. */
async function call(offer: McpTool, input: JsonObject, context: ToolContext): Promise<ToolOutcome> {
  const { connection } = offer
  for (let isLastTry = false; ; isLastTry = true) {
    const client = await reach(connection, context.signal)
    if (!client)
      return fail(`The MCP server ${connection.name} cannot be reached. Try again later, or go on without it.`)
    try {
      return toOutcome(await client.callTool({ name: offer.tool.name, arguments: input }, optionsOf(offer, context)))
    } catch (cause) {
      context.signal.throwIfAborted()
      if (isDead(cause)) await client.close()
      if (!isUnseen(cause) || isLastTry) return failed(cause, offer)
    }
  }
}

/** Undefined when the server cannot be reached; throws when the run ends while it is being connected. */
async function reach(connection: McpConnection, signal: AbortSignal): Promise<Client | undefined> {
  const { promise, reject } = Promise.withResolvers<never>()
  const leave = () => reject(signal.reason)
  signal.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([connection.client().catch(() => undefined), promise])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

/** Abort and timeout are told to the server, by the protocol's cancellation. */
const optionsOf = ({ callTimeoutMs }: McpTool, context: ToolContext): RequestOptions => ({
  signal: context.signal,
  timeout: callTimeoutMs,
  resetTimeoutOnProgress: true,
  maxTotalTimeout: CALL_TOTAL_MS,
  onprogress: ({ progress, total, message = 'progress' }) =>
    context.report(total ? progress / total : progress, clip(message, MAX_PROGRESS)),
})

const codeOf = (cause: unknown) => (cause instanceof SdkError ? cause.code : undefined)
const isForgotten = (cause: unknown) => cause instanceof SdkHttpError && cause.status === 404
const isUnseen = (cause: unknown) => codeOf(cause) === SdkErrorCode.NotConnected || isForgotten(cause)
const isDead = (cause: unknown) => isUnseen(cause) || codeOf(cause) === SdkErrorCode.ConnectionClosed

function failed(cause: unknown, { connection, callTimeoutMs }: McpTool): ToolOutcome {
  const server = `The MCP server ${connection.name}`
  if (cause instanceof ProtocolError) return fail(`${server} refused the call: ${clip(cause.message, MAX_REFUSAL)}`)
  if (codeOf(cause) === SdkErrorCode.RequestTimeout) return fail(`${server} did not answer within ${callTimeoutMs} ms.`)
  if (isDead(cause)) return fail(`${server} ended during the call. It is started again when it is called again.`)
  return fail(`${server} could not answer the call. Try again later, or go on without it.`)
}
