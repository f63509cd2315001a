import {
  type CallToolResult,
  ProtocolError,
  type RequestOptions,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from '@modelcontextprotocol/client'
import type { JsonObject } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import { type AskPerson, fail, succeed, type ToolContext, type ToolOutcome } from '../port.ts'
import { type DeliveredFiles, withKept } from '../workspace/deliver.ts'
import { AnswerProblem, MALFORMED, unanswered } from './answers.ts'
import type { McpConnection } from './connection.ts'
import { readContent } from './content.ts'
import { broughtFiles } from './links.ts'
import type { SharedClient } from './shared-client.ts'

/** A tool of an MCP server, under the name that the server gave it. */
export type RemoteTool = {
  connection: McpConnection
  toolName: string
  callTimeoutMs: number
  /** Keeps the files that a result contains. */
  files?: DeliveredFiles | undefined
  /** Called when the server no longer knows the tool. */
  onUnknownTool?: () => void
}

const CALL_TOTAL_MS = 600_000
const MAX_PROGRESS_CHARS = 500
const MAX_REFUSAL_CHARS = 2_000

/**
 * Calls a tool of an MCP server. Tries a second time, with a new client, only when the server certainly did not carry out the first
 * call: there was no connection, or the server no longer knew the session.
 */
export async function callTool(remote: RemoteTool, input: JsonObject, context: ToolContext): Promise<ToolOutcome> {
  const { connection, toolName } = remote
  for (let isLastTry = false; ; isLastTry = true) {
    const client = await connect(connection, context.signal)
    if (!client) return unreachable(connection)
    context.assertMayAct()
    const { hasSession } = client
    const progress = createProgress(context.report)
    const silence = new Silence(remote.callTimeoutMs)
    const options = optionsOf({ ...context, report: progress.report }, silence)
    const ask: AskPerson = (question) => silence.pausedFor(() => context.ask(question))
    const call = { name: toolName, arguments: input }
    try {
      const result = await client.run((each) => client.questions.during(ask, () => each.callTool(call, options)))
      const brought =
        remote.files && (await broughtFiles(result, { ...context, client, limitMs: remote.callTimeoutMs }))
      const outcome = toOutcome(result, brought?.unread)
      if (outcome.isError && UNKNOWN_TOOL.test(outcome.output)) remote.onUnknownTool?.()
      return await withKept(outcome, brought?.files ?? [], { files: remote.files, context })
    } catch (cause) {
      context.signal.throwIfAborted()
      if (cause instanceof ProtocolError && NOT_CARRIED_OUT.includes(cause.code)) remote.onUnknownTool?.()
      const isUndelivered = isNotConnected(cause) || (hasSession && isUnknownSession(cause))
      if (isUndelivered || isClosed(cause)) await connection.retire(client)
      if (!isUndelivered || isLastTry) return failureOf(cause, remote)
    } finally {
      progress.end()
      silence.end()
    }
  }
}

/** The text that the official servers put in a result where the protocol requires an error. A match only causes the tools to be listed again. */
const UNKNOWN_TOOL = /^.{0,100}(?:unknown tool|tool .{0,1000} not found|no such tool)/i

const unreachable = ({ name }: McpConnection): ToolOutcome =>
  fail(`The MCP server ${name} cannot be reached. Try again later, or go on without it.`)

/** Returns `undefined` when the server cannot be reached. Throws when the run ends first. */
async function connect(connection: McpConnection, signal: AbortSignal): Promise<SharedClient | undefined> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([connection.client().catch(() => undefined), promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** With these options an abort or a timeout also cancels the call at the server. */
const optionsOf = ({ signal, report }: Pick<ToolContext, 'signal' | 'report'>, silence: Silence): RequestOptions => ({
  signal: AbortSignal.any([signal, silence.signal]),
  timeout: CALL_TOTAL_MS,
  maxTotalTimeout: CALL_TOTAL_MS,
  onprogress({ progress, total, message = 'progress' }) {
    silence.heard()
    report(total ? progress / total : progress, truncate(message, MAX_PROGRESS_CHARS))
  },
})

function toOutcome({ content, structuredContent, isError }: CallToolResult, unread?: Map<string, string>): ToolOutcome {
  const { text: said, attachments } = readContent(content, unread)
  const isHeld = structuredContent === undefined || createHolds(said)(structuredContent)
  const text =
    [said, isHeld ? '' : JSON.stringify(structuredContent)].filter((each) => each !== '').join('\n') || '(no output)'
  const outcome = isError === true ? fail(text) : succeed(text)
  return attachments.length === 0 ? outcome : { ...outcome, attachments }
}

/** The most characters that are searched. Values that were not found by then count as missing. */
const MAX_SEARCHED_CHARS = 50_000_000

/** Whether a text contains all values of the structured content: most servers also send it as JSON text, or in words. */
function createHolds(text: string): (value: unknown) => boolean {
  let leftChars = MAX_SEARCHED_CHARS
  const holds = (value: unknown): boolean => {
    if (typeof value === 'object' && value !== null) return text !== '' && Object.values(value).every(holds)
    const at = text.indexOf(String(value))
    leftChars -= at
    return at >= 0 && leftChars > 0
  }
  return holds
}

const codeOf = (cause: unknown) => (cause instanceof SdkError ? cause.code : undefined)
const isClosed = (cause: unknown) => codeOf(cause) === SdkErrorCode.ConnectionClosed

/** The protocol requires 404; the official servers of 2025 answer 400. */
const UNKNOWN_SESSION = [400, 404, 410]
export const isUnknownSession = (cause: unknown): boolean =>
  cause instanceof SdkHttpError && UNKNOWN_SESSION.includes(cause.status ?? 0)

const NOT_CONNECTED: readonly unknown[] = [
  SdkErrorCode.NotConnected,
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]

/** Whether the error or one of its causes shows that nothing was sent. */
function isNotConnected(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  return ('code' in cause && NOT_CONNECTED.includes(cause.code)) || isNotConnected(cause.cause)
}

const INVALID_ANSWERS: readonly unknown[] = [SdkErrorCode.InvalidResult, SdkErrorCode.ClientHttpUnexpectedContent]
/** Includes the errors that the package throws for a response that is no JSON, or JSON that is no message. */
const isMalformed = (cause: unknown) =>
  INVALID_ANSWERS.includes(codeOf(cause)) ||
  cause instanceof SyntaxError ||
  (cause instanceof Error && cause.name === 'ZodError')

/** The outcome of a failure. If the call was sent the text says that it may have been carried out, unless the server did not understand it. */
function failureOf(cause: unknown, { connection, callTimeoutMs }: RemoteTool): ToolOutcome {
  const server = `The MCP server ${connection.name}`
  if (isNotConnected(cause)) return unreachable(connection)
  if (cause instanceof ProtocolError) {
    if (cause.data instanceof AnswerProblem) return fail(`${server} ${cause.data.text}.`)
    const refusal = `refused the call: ${truncate(cause.message, MAX_REFUSAL_CHARS)}`
    return fail(`${server} ${NOT_CARRIED_OUT.includes(cause.code) ? refusal : `${unanswered(refusal)}.`}`)
  }
  if (codeOf(cause) === SdkErrorCode.RequestTimeout)
    return fail(`${server} ${unanswered(`did not answer within ${callTimeoutMs} ms`)}.`)
  if (isClosed(cause))
    return fail(`${server} ${unanswered('ended during the call')}. It is started again when it is called again.`)
  if (WANTS_INPUT.includes(codeOf(cause))) return fail(`${server} ${unanswered(ASKED)}. Go on without it.`)
  if (isMalformed(cause)) return fail(`${server} ${MALFORMED.text}.`)
  const status = cause instanceof SdkHttpError ? ` (HTTP ${cause.status})` : ''
  return fail(`${server} ${unanswered(`could not answer the call${status}`)}. Find out before you call it again.`)
}

/** Errors of JSON-RPC for a request that was not understood. */
const NOT_CARRIED_OUT: readonly number[] = [-32_700, -32_600, -32_601, -32_602]

const WANTS_INPUT: readonly unknown[] = [
  SdkErrorCode.CapabilityNotSupported,
  SdkErrorCode.UnsupportedResultType,
  SdkErrorCode.InputRequiredRoundsExceeded,
]
const ASKED = 'asked for input that this server does not give'

/** This many reports are passed on at once, and after that one in each interval. */
const BURST = 5
const INTERVAL_MS = 200

type Progress = { report: (progress: number, detail: string) => void; end: () => void }

/** Passes on the progress of a call. If reports come faster than a person reads, only the newest is passed on. */
export function createProgress(report: Progress['report']): Progress {
  let [room, held]: [number, Parameters<Progress['report']> | undefined] = [BURST, undefined]
  let timer: NodeJS.Timeout | undefined
  const refill = () => {
    room = Math.min(BURST, room + 1)
    if (held) send(...held)
    if (room < BURST) return
    clearInterval(timer)
    timer = undefined
  }
  const send: Progress['report'] = (...args) => {
    held = undefined
    room -= 1
    timer ??= setInterval(refill, INTERVAL_MS).unref()
    report(...args)
  }
  return {
    report(...args) {
      if (room > 0) send(...args)
      else held = args
    },
    end: () => clearInterval(timer),
  }
}

/** Ends a call whose server is silent for too long. The time does not run while a person is asked. */
class Silence {
  readonly #maxMs: number
  readonly #abort = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #pauses = 0

  constructor(maxMs: number) {
    this.#maxMs = maxMs
    this.heard()
  }

  /** Aborted when the silence has lasted for too long. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Call it when the server has sent something: the time starts again. */
  heard(): void {
    this.end()
    if (this.#pauses === 0) this.#timer = setTimeout(() => this.#abort.abort('silence'), this.#maxMs).unref()
  }

  async pausedFor<T>(work: () => Promise<T>): Promise<T> {
    this.#pauses += 1
    this.end()
    try {
      return await work()
    } finally {
      this.#pauses -= 1
      this.heard()
    }
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
