import type { Schema } from '../api.ts'
import { ApiError, ConnectionFailed } from '../errors.ts'
import { path } from '../http/path.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import { backoffMs, sleep } from '../http/wait.ts'

/** How a request was decided. `ended`: its run ended first. `unknown`: it was decided while the connection was away. */
export type Resolution = Partial<Pick<Schema<'PermissionResolvedData'>, 'allow' | 'reason' | 'by' | 'input'>> & {
  how: Schema<'PermissionResolvedData'>['how'] | 'ended' | 'unknown'
}

export type PermissionRequest = Schema<'PermissionRequestData'> & Partial<Schema<'PendingPermission'>>

/** Where a request comes from. */
export type PermissionOrigin = {
  transport: Transport
  runId: string
  /** The session of the reply's path, where it is neither named by the request nor the run. It may have to be asked for. */
  sessionOf?: ((runId: string) => string | Promise<string>) | undefined
  subagentId?: string | undefined
}

/** A tool call that waits for a person. Answer it with `allow` or `deny`; without an answer it is denied at `expiresAt`. */
export class PermissionAsk {
  /** As the server has sent it. */
  readonly request: PermissionRequest
  readonly #origin: PermissionOrigin
  readonly #decided = new AbortController()
  #resolution: Resolution | undefined

  constructor(request: PermissionRequest, origin: PermissionOrigin) {
    this.request = request
    this.#origin = origin
  }

  get id(): string {
    return this.request.id
  }

  get runId(): string {
    return this.#origin.runId
  }

  /** The sub-agent whose call it is. */
  get subagentId(): string | undefined {
    return this.#origin.subagentId
  }

  get toolName(): string {
    return this.request.tool_name
  }

  get toolUseId(): string {
    return this.request.tool_use_id
  }

  get input(): Schema<'JsonObject'> {
    return this.request.input
  }

  get message(): string {
    return this.request.message
  }

  /** The effect that the call would have: a change of a file, a command or a request. */
  get preview(): Schema<'PermissionPreview'> | undefined {
    return this.request.preview
  }

  /** By this machine's clock, as far as the server's answers tell how it goes. */
  get expiresAt(): Date {
    return this.#origin.transport.localTime(this.request.expires_at)
  }

  /** Aborted when the server says that the request is decided, here, elsewhere or by its deadline. Close the question that you show. */
  get signal(): AbortSignal {
    return this.#decided.signal
  }

  /** How it was decided, as soon as that is known. */
  get resolution(): Resolution | undefined {
    return this.#resolution
  }

  /**
   * Lets the tool run. `remember` allows it for the rest of the session, `input` lets it run with another input. Resolves with `false`
   * when the request was decided before, elsewhere or by its deadline.
   */
  allow(
    options: { remember?: boolean; input?: Schema<'JsonObject'>; reason?: string } & CallOptions = {},
  ): Promise<boolean> {
    const { remember, input, reason, ...call } = options
    return this.#reply({ allow: true, remember: remember ? 'session' : undefined, input, reason }, call)
  }

  /** Refuses the call. The model reads the reason. Resolves as `allow` does. */
  deny(reason?: string, call: CallOptions = {}): Promise<boolean> {
    return this.#reply({ allow: false, reason }, call)
  }

  /** Called when the decision is known. */
  settle(resolution: Resolution): void {
    this.#resolution ??= resolution
    this.#decided.abort()
  }

  /** A reply whose answer was lost is sent again: one of all replies counts. */
  async #reply(body: { allow: boolean; [field: string]: unknown }, call: CallOptions): Promise<boolean> {
    const { transport, runId, sessionOf } = this.#origin
    const session = this.request.session_id ?? (await sessionOf?.(runId)) ?? runId
    for (let n = 1; ; n++) {
      if (this.#resolution) return n > 1 && this.#isAs(body.allow, call)
      try {
        await transport.json('POST', path`/sessions/${session}/permissions/${this.id}`, { body, ...call })
        return true
      } catch (cause) {
        // 409: somebody has replied. 404: it has expired, or its run has ended.
        const isDecided = cause instanceof ApiError && (cause.status === 409 || cause.status === 404)
        if (isDecided) return n > 1 && this.#isAs(body.allow, call)
        if (!(cause instanceof ConnectionFailed) || n >= REPLIES) throw cause
        await sleep(backoffMs(n, PAUSE_MS), call.signal)
      }
    }
  }

  /** Whether the decision, which the stream tells soon, is the same as a reply of ours whose answer was lost. */
  async #isAs(allow: boolean, call: CallOptions): Promise<boolean> {
    await sleep(TOLD_MS, this.signal).catch(() => call.signal?.throwIfAborted())
    return this.#resolution?.allow === allow && this.#resolution.how === 'reply'
  }
}

const REPLIES = 4
const PAUSE_MS = 250
const TOLD_MS = 5_000
