import type { EarlierRun } from '../../../shared/agent/sessions/open-runs.ts'
import {
  kindOf,
  type PermissionKey,
  type PermissionStore,
  type PermissionSummary,
} from '../../../shared/cluster/permissions/store.ts'
import { retryUntil } from '../../../shared/kernel/async/retry.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { unanswered } from '../../../shared/work/runs/open-asks.ts'
import type { EventReporter } from '../event-reporter.ts'

export type EarlierAsksDeps = {
  permissions: Pick<PermissionStore, 'find' | 'decide'>
  reporter: Pick<EventReporter, 'permissionResolved'>
}

/** A run of another worker: `scopeId` is the first id of the paths of its permission replies. */
export type AskingRun = { tenant: TenantId; scopeId: string; runId: string }

const RETRY_MS = 200
/** The end of a run waits this long for a store that does not answer. */
const WITHIN_MS = 500

/** The permission requests of the turn that was under way when the worker of a run died. */
export class EarlierAsks {
  readonly #run: AskingRun
  readonly #step: EarlierRun['step']
  readonly #deps: EarlierAsksDeps
  #withdrawn: Promise<PermissionSummary[]> | undefined

  constructor(run: AskingRun, earlier: EarlierRun | undefined, deps: EarlierAsksDeps) {
    this.#run = run
    this.#step = earlier?.step
    this.#deps = deps
  }

  /** The ids of the run's own requests, which it makes again when it continues. */
  get #own(): string[] {
    return Object.values(this.#step?.calls ?? {}).flatMap(({ ask }) => ask?.id ?? [])
  }

  get isEmpty(): boolean {
    return this.#own.length + this.#ofAgents.length === 0
  }

  get #ofAgents(): readonly string[] {
    return this.#step?.agentAsks.map(({ id }) => id) ?? []
  }

  has(id: unknown): boolean {
    return [...this.#own, ...this.#ofAgents].some((each) => each === id)
  }

  /** Withdraws requests that are not made again, without waiting for the store. */
  drop(ids: readonly string[]): void {
    for (const id of ids) void this.#withdraw(id)
  }

  /** The run ends. Returns the requests that were open. If the store is away, it resolves after a short time and continues to try. */
  withdrawAll(): Promise<PermissionSummary[]> {
    this.#withdrawn ??= this.#withdrawWithin(WITHIN_MS)
    return this.#withdrawn
  }

  async #withdrawWithin(ms: number): Promise<PermissionSummary[]> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => resolve(undefined), ms)
    const withdraw = (id: string) => Promise.race([this.#withdraw(id), late])
    const open = await Promise.all([...this.#own, ...this.#ofAgents].map(withdraw))
    clearTimeout(timer)
    return open.flatMap((request) => request ?? [])
  }

  /** For a run that ends before it has continued: returns the start of its repeated turn and the open requests, each resolved (D37.1). */
  async end(): Promise<RunEvent[]> {
    const { turn = 1, model = '' } = this.#step ?? {}
    return [{ type: 'turn_start', turn_number: turn, model }, ...(await this.resolve(new Set()))]
  }

  /**
   * For a run that ends: returns the open requests that it has not shown again, each resolved. `shown` has the ids of
   * the calls and requests that it has shown again.
   */
  async resolve(shown: ReadonlySet<unknown>): Promise<RunEvent[]> {
    const open = await this.withdrawAll()
    const isLeft = ({ id }: PermissionSummary) => this.#own.includes(id) && !shown.has(id)
    return open.filter(isLeft).flatMap((request) => {
      const events = resolved(request)
      return shown.has(request.tool_use_id) ? events.slice(kindOf(request.id) === 'tool_call' ? 2 : 1) : events
    })
  }

  /** Returns the request if it was open. */
  #withdraw(id: string): Promise<PermissionSummary | undefined> {
    const { permissions, reporter } = this.#deps
    const { tenant, scopeId, runId } = this.#run
    const key: PermissionKey = { tenant, scopeId, id }
    const withdraw = async () => {
      const found = await permissions.find(key)
      const { isWon } = await permissions.decide(key, { state: 'withdrawn' })
      if (!found || !isWon) return undefined
      const { id: _id, session_id: _session, run_id: _run, ...details } = found
      reporter.permissionResolved({ ...key, runId, details }, CANCELLED)
      return found
    }
    return retryUntil(withdraw, { pauses: RETRY_MS, ref: false })
  }
}

const CANCELLED = { allow: false, how: 'cancelled', reason: '' } as const

function resolved({ id, tool_use_id, tool_name, input, message, preview, expires_at }: PermissionSummary): RunEvent[] {
  const call = { id: tool_use_id, tool_name, input }
  if (kindOf(id) === 'tool_call')
    return [{ type: 'tool_use', ...call, executor: 'client', expires_at }, unanswered(call)]
  const subject = { id, tool_use_id, tool_name }
  return [
    { type: 'tool_use', ...call },
    { type: 'permission_request', ...subject, input, message, ...(preview && { preview }), expires_at },
    { type: 'permission_resolved', ...subject, ...CANCELLED },
  ]
}
