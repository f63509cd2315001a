import type { Schema } from '../api.ts'
import { ApiError, ConnectionFailed } from '../errors.ts'
import { at, type CallOptions, type Transport } from '../http/transport.ts'
import { backoffMs, sleep } from '../http/wait.ts'

/** How a request was decided. `ended`: its run ended first. `unknown`: it was decided while the connection was away. */
export type Resolution = Partial<Pick<Schema<'PermissionResolvedData'>, 'allow' | 'reason' | 'by' | 'input'>> & {
  how: Schema<'PermissionResolvedData'>['how'] | 'ended' | 'unknown'
}

export type PermissionRequest = Schema<'PermissionRequestData'> & Partial<Schema<'PendingPermission'>>

type Origin = {
  transport: Transport
  runId: string
  /** The session of the reply's path, or the run. It may have to be asked for. */
  sessionId(): Promise<string>
  subagentId?: string | undefined
}

/** A tool call that waits for a person. Answer it with `allow` or `deny`; without an answer it is denied at `expiresAt`. */
export class PermissionAsk {
  /** As the server has sent it. */
  readonly request: PermissionRequest
  readonly runId: string
  /** The sub-agent whose call it is. */
  readonly subagentId: string | undefined
  readonly #origin: Origin
  readonly #decided = new AbortController()
  #resolution: Resolution | undefined

  constructor(request: PermissionRequest, origin: Origin) {
    this.request = request
    this.runId = origin.runId
    this.subagentId = origin.subagentId
    this.#origin = origin
  }

  get id(): string {
    return this.request.id
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
    if (this.#resolution) return
    this.#resolution = resolution
    this.#decided.abort()
  }

  /** A reply whose answer was lost is sent again: one of all replies counts. */
  async #reply(body: { allow: boolean; [field: string]: unknown }, call: CallOptions): Promise<boolean> {
    const path = `${at('/sessions/', await this.#origin.sessionId())}/permissions/${this.id}`
    for (let n = 1; ; n++) {
      if (this.#resolution) return n > 1 && this.#isAs(body.allow, call)
      try {
        await this.#origin.transport.json('POST', path, { body, ...call })
        return true
      } catch (cause) {
        // 409: somebody has replied. 404: it has expired, or its run has ended.
        const isDecided = cause instanceof ApiError && (cause.status === 409 || cause.status === 404)
        if (isDecided) return n > 1 && this.#isAs(body.allow, call)
        if (!(cause instanceof ConnectionFailed) || n >= REPLIES) throw cause
        await sleep(backoffMs(n, PAUSE_MS, PAUSE_MS), call.signal)
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
const PAUSE_MS = 500
const TOLD_MS = 5_000
