import type { Schema } from '../api.ts'
import { isRefusal } from '../errors.ts'
import { path } from '../http/request.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import { sleep } from '../http/wait.ts'

/** How a request was decided. `ended`: its run ended first. `unknown`: it was decided while the connection was away. */
export type Resolution = Partial<Pick<Schema<'PermissionResolvedData'>, 'allow' | 'reason' | 'by' | 'input'>> & {
  how: Schema<'PermissionResolvedData'>['how'] | 'ended' | 'unknown'
}

/** `subagent_id`: the sub-agent whose call it is. */
export type PermissionRequest = Schema<'PermissionRequestData'> &
  Partial<Schema<'PendingPermission'>> & { subagent_id?: string }

/** Where requests come from. */
export type PermissionOrigin = {
  transport: Transport
  /** Returns the session for the reply's path, if it is neither named in the request nor the run itself. It may need a request to the server. */
  sessionOf?(runId: string): string | undefined | Promise<string | undefined>
}

/** A tool call that waits for a person. Answer it with `allow` or `deny`; without an answer it is denied at `expiresAt`. */
export type PermissionAsk = {
  /** As the server has sent it. */
  readonly request: PermissionRequest
  readonly id: string
  readonly runId: string
  /** The sub-agent whose call it is. */
  readonly subagentId: string | undefined
  readonly toolName: string
  readonly toolUseId: string
  readonly input: Schema<'JsonObject'>
  readonly message: string
  /** The effect that the call would have: a change of a file, a command or a request. */
  readonly preview: Schema<'PermissionPreview'> | undefined
  /** Converted to this machine's clock, by the difference that the server's answers have shown. */
  readonly expiresAt: Date
  /** Aborted when the server reports a decision, which was made here, elsewhere or by the deadline. Close the question that you show. */
  readonly signal: AbortSignal
  /** How it was decided, once that is known. */
  readonly resolution: Resolution | undefined
  /**
   * Lets the tool run. `remember` allows it for the rest of the session, `input` lets it run with another input. Resolves with `false`
   * when the request was already decided, elsewhere or by its deadline.
   */
  allow(options?: AllowOptions): Promise<boolean>
  /** Refuses the call. The model reads the reason. Resolves like `allow`. */
  deny(reason?: string, call?: CallOptions): Promise<boolean>
  /** Called when the decision is known. */
  settle(resolution: Resolution): void
}

type AllowOptions = { remember?: boolean; input?: Schema<'JsonObject'>; reason?: string } & CallOptions

type Reply = CallOptions & { body: { allow: boolean; [field: string]: unknown } }

export function createAsk(request: PermissionRequest, runId: string, origin: PermissionOrigin): PermissionAsk {
  const decided = new AbortController()
  const ask = {
    request,
    id: request.id,
    runId,
    subagentId: request.subagent_id,
    toolName: request.tool_name,
    toolUseId: request.tool_use_id,
    input: request.input,
    message: request.message,
    preview: request.preview,
    signal: decided.signal,
    resolution: undefined as Resolution | undefined,
    get expiresAt() {
      return origin.transport.localTime(request.expires_at)
    },
    allow({ remember, input, reason, ...call }: AllowOptions = {}) {
      const body = { allow: true, remember: remember ? 'session' : undefined, input, reason }
      return reply(ask, origin, { body, ...call })
    },
    deny: (reason?: string, call?: CallOptions) => reply(ask, origin, { body: { allow: false, reason }, ...call }),
    settle(resolution: Resolution) {
      ask.resolution ??= resolution
      decided.abort()
    },
  }
  return ask
}

/** Sends a reply, and repeats it when its answer was lost; only one reply counts. */
async function reply(ask: PermissionAsk, { transport, sessionOf }: PermissionOrigin, call: Reply): Promise<boolean> {
  const { request, id, runId, resolution } = ask
  if (resolution) return false
  const session = request.session_id ?? (await sessionOf?.(runId)) ?? runId
  try {
    await transport.json('POST', path`/sessions/${session}/permissions/${id}`, { ...call, isSafe: true })
    return true
  } catch (cause) {
    // 409: somebody else has replied. 404: it has expired, or its run has ended.
    if (!isRefusal(cause, 404, 409)) throw cause
    if (!cause.mayBeDone) return false
  }
  // The decision, which the stream shows soon, may be that of our own reply whose answer was lost.
  await sleep(TOLD_MS, ask.signal).catch(() => call.signal?.throwIfAborted())
  return ask.resolution?.allow === call.body.allow && ask.resolution.how === 'reply'
}

const TOLD_MS = 5_000
