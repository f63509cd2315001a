import {
  type CallToolResult,
  type Client,
  ProtocolError,
  type RequestOptions,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from '@modelcontextprotocol/client'
import type { JsonObject } from '../../events.ts'
import { truncate } from '../../text.ts'
import { fail, succeed, type ToolContext, type ToolOutcome } from '../port.ts'
import type { McpConnection } from './connection.ts'
import { readContent } from './content.ts'

/** A tool of an MCP server, under the name that the server gave it. */
export type RemoteTool = { connection: McpConnection; toolName: string; callTimeoutMs: number }

const CALL_TOTAL_MS = 600_000
const MAX_PROGRESS_CHARS = 500
const MAX_REFUSAL_CHARS = 2_000
const MAX_ANSWER_CHARS = 1024 * 1024

/**
 * Calls a tool of an MCP server. Tries a second time only when the server certainly did not get the first call: the connection
 * was closed or the server did not know the session any more.
 */
export async function callTool(remote: RemoteTool, input: JsonObject, context: ToolContext): Promise<ToolOutcome> {
  const { connection, toolName } = remote
  for (let isLastTry = false; ; isLastTry = true) {
    const client = await connect(connection, context.signal)
    if (!client)
      return fail(`The MCP server ${connection.name} cannot be reached. Try again later, or go on without it.`)
    context.assertMayAct()
    try {
      return toOutcome(await client.callTool({ name: toolName, arguments: input }, optionsOf(remote, context)))
    } catch (cause) {
      context.signal.throwIfAborted()
      if (isDisconnected(cause)) await client.close()
      if (!isUndelivered(cause) || isLastTry) return failureOf(cause, remote)
    }
  }
}

/** Returns `undefined` when the server cannot be reached. Throws when the run ends first. */
async function connect(connection: McpConnection, signal: AbortSignal): Promise<Client | undefined> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([connection.client().catch(() => undefined), promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** With these options the client also cancels the call at the server, on an abort and on a timeout. */
const optionsOf = ({ callTimeoutMs }: RemoteTool, context: ToolContext): RequestOptions => ({
  signal: context.signal,
  timeout: callTimeoutMs,
  resetTimeoutOnProgress: true,
  maxTotalTimeout: CALL_TOTAL_MS,
  onprogress: ({ progress, total, message = 'progress' }) =>
    context.report(total ? progress / total : progress, truncate(message, MAX_PROGRESS_CHARS)),
})

function toOutcome({ content, structuredContent, isError }: CallToolResult): ToolOutcome {
  const { text: said, attachments } = readContent(content)
  const text = said || (structuredContent === undefined ? '(no output)' : JSON.stringify(structuredContent))
  const shown = truncate(text, MAX_ANSWER_CHARS, `…\n[The answer was cut at ${MAX_ANSWER_CHARS} characters.]`)
  const outcome = isError === true ? fail(shown) : succeed(shown)
  return attachments.length === 0 ? outcome : { ...outcome, attachments }
}

const codeOf = (cause: unknown) => (cause instanceof SdkError ? cause.code : undefined)
const isUnknownSession = (cause: unknown) => cause instanceof SdkHttpError && cause.status === 404
const isUndelivered = (cause: unknown) => codeOf(cause) === SdkErrorCode.NotConnected || isUnknownSession(cause)
const isDisconnected = (cause: unknown) => isUndelivered(cause) || codeOf(cause) === SdkErrorCode.ConnectionClosed

function failureOf(cause: unknown, { connection, callTimeoutMs }: RemoteTool): ToolOutcome {
  const server = `The MCP server ${connection.name}`
  if (cause instanceof ProtocolError)
    return fail(`${server} refused the call: ${truncate(cause.message, MAX_REFUSAL_CHARS)}`)
  if (codeOf(cause) === SdkErrorCode.RequestTimeout) return fail(`${server} did not answer within ${callTimeoutMs} ms.`)
  if (isDisconnected(cause))
    return fail(`${server} ended during the call. It is started again when it is called again.`)
  return fail(`${server} could not answer the call. Try again later, or go on without it.`)
}
