import type { JsonObject, PermissionPreview, RunEvent, SubAgentEvent } from '../../../../shared/kernel/events.ts'
import { waitsForClient } from '../../../../shared/work/runs/open-asks.ts'

/** The run itself, beside its sub-agents. */
const MAIN = ''

type CallState = 'open' | 'waiting'

/** The calls of the run or of one sub-agent that have no result, and the number of sub-agents that work for them. */
type Scope = { parent: string; calls: Map<string, CallState>; children: number }

/** A call of a tool, by the sub-agent that makes it and its id: two agents may use the same id. */
export type CallKey = { subagentId: string | undefined; id: string }

/** Whether the request is a tool's question to a person, whose answer is neither the input of the call nor a permission for it (D40.4). */
export const isQuestion = ({ preview }: { preview?: PermissionPreview }): boolean =>
  preview?.kind === 'form' || preview?.kind === 'link'

/**
 * The tool calls of a run that have no result yet, counted from its events. A run is at rest when a call waits for permission or for the client that
 * executes it, and nothing else is running: each other open call waits, too, or belongs to a sub-agent that is at rest.
 */
export class OpenCalls {
  readonly #scopes = new Map<string, Scope>([[MAIN, { parent: MAIN, calls: new Map(), children: 0 }]])
  /** The calls that wait: those for a permission by the request's id, those that the client executes by their own id. */
  readonly #pending = new Map<string, CallKey>()
  /** The calls for which permission was ever requested, by the request's id. */
  readonly #asked = new Map<string, CallKey>()
  /** The requests that were made since the run last recovered; earlier ones may be made again. */
  readonly #made = new Set<string>()
  /** The calls of a void turn that may be made again under the same id, as long as the model is not called again (D32.9a). */
  readonly #void = new Set<string>()
  /** The ids of all calls of the run itself so far. */
  readonly #used = new Set<string>()
  #voided: { calls: readonly CallKey[]; agents: readonly string[] } = NOTHING
  #abandoned: CallKey[] = []
  #turn = 0
  #beginsAnew = false

  /** Returns whether the event has changed them. */
  take(event: RunEvent): boolean {
    const { type } = event
    this.#abandoned = []
    this.#voided = NOTHING
    this.#beginsAnew = type === 'warning' && event.code === 'run_recovered' && !this.#isBefore(event.detail)
    if (this.#beginsAnew) return this.#recover()
    if (type === 'turn_start') this.#turn = event.turn_number
    if (this.#void.size > 0) this.#takeVoid(event)
    if (type === 'tool_use') this.#used.add(event.id)
    if (type === 'subagent_event') return this.#takeCall(unwrapped(event), event.subagent_id)
    if (type === 'subagent_start') return this.#begin(event.subagent_id, event.parent_subagent_id ?? MAIN)
    if (type === 'subagent_end') return this.#end(event.subagent_id)
    return this.#takeCall(event, MAIN)
  }

  get isAtRest(): boolean {
    return this.#pending.size > 0 && this.#restsIn(MAIN)
  }

  /** The call that a permission request is for, whether it is still open or not; `undefined` for a request that has not been made yet. */
  askedFor(permissionId: string): CallKey | undefined {
    return this.#asked.get(permissionId)
  }

  /** The calls that wait now, by the id of their permission request, or by their own id when the client executes them. */
  get pending(): ReadonlyMap<string, CallKey> {
    return this.#pending
  }

  /** The calls without a result that wait for no permission. While the run is at rest, each of them is a sub-agent's. */
  get carriers(): CallKey[] {
    return [...this.#scopes].flatMap(([scope, { calls }]) =>
      [...calls].flatMap(([id, state]) => (state === 'open' ? [keyOf(scope, id)] : [])),
    )
  }

  /** Whether the latest event says that the present turn is repeated: its events so far are void. */
  get beginsAnew(): boolean {
    return this.#beginsAnew
  }

  /** The open calls and sub-agents that became void because the latest event says that their turn is repeated. Some calls may be made again. */
  get voided(): { calls: readonly CallKey[]; agents: readonly string[] } {
    return this.#voided
  }

  /** The void calls that, as the latest event shows, are not made again: they get no result. */
  get abandoned(): readonly CallKey[] {
    return this.#abandoned
  }

  /** Whether the turn that the warning names is a later one: then the rest of the present turn comes first, without deltas (D32.7a). */
  #isBefore({ turn_number: turn }: JsonObject): boolean {
    return Number(turn) > this.#turn
  }

  /** All open calls become void. Calls of sub-agents are not made again: a repeated sub-agent has another id. */
  #recover(): false {
    const calls = [...this.#scopes].flatMap(([scope, open]) => [...open.calls.keys()].map((id) => keyOf(scope, id)))
    this.#voided = { calls, agents: [...this.#scopes.keys()].filter((id) => id !== MAIN) }
    for (const { subagentId, id } of calls) if (subagentId === undefined) this.#void.add(id)
    this.#abandoned = calls.filter(({ subagentId }) => subagentId !== undefined)
    this.#scopes.clear()
    this.#scopes.set(MAIN, { parent: MAIN, calls: new Map(), children: 0 })
    this.#pending.clear()
    this.#made.clear()
    return false
  }

  #takeVoid(event: RunEvent): void {
    const isAgain = event.type === 'tool_use' && this.#used.has(event.id)
    if (isAgain) this.#void.delete(event.id)
    if (isAgain || !ENDS_VOID.has(event.type)) return
    this.#abandoned = [...this.#void].map((id) => ({ subagentId: undefined, id }))
    this.#void.clear()
  }

  #restsIn(id: string): boolean {
    const scope = this.#scopes.get(id)
    if (!scope || scope.calls.size === 0) return false
    const open = [...scope.calls.values()].filter((state) => state === 'open').length
    if (open > scope.children) return false
    return [...this.#scopes].every(([child, { parent }]) => child === MAIN || parent !== id || this.#restsIn(child))
  }

  #begin(id: string, parent: string): true {
    this.#scopes.set(id, { parent, calls: new Map(), children: 0 })
    const above = this.#scopes.get(parent)
    if (above) above.children++
    return true
  }

  #end(id: string): true {
    const scope = this.#scopes.get(id)
    const above = scope && this.#scopes.get(scope.parent)
    if (above) above.children--
    this.#scopes.delete(id)
    for (const [request, { subagentId }] of this.#pending) if (subagentId === id) this.#pending.delete(request)
    return true
  }

  /** A sub-agent's permission request comes in a `subagent_event`, and then once more as a plain event (D4.13). */
  #takeCall(event: JsonObject & { type: string }, scopeId: string): boolean {
    const id = String(event['id'])
    switch (event.type) {
      case 'tool_use':
        if (waitsForClient(event as RunEvent)) return this.#askClient(id)
        return this.#scopes.get(scopeId)?.calls.set(id, 'open') !== undefined
      case 'tool_result':
        if (scopeId === MAIN) this.#pending.delete(id)
        return this.#scopes.get(scopeId)?.calls.delete(id) ?? false
      case 'permission_request':
        return this.#ask(id, keyOf(scopeId, String(event['tool_use_id'])))
      case 'permission_resolved':
        return this.#resolve(id)
      default:
        return false
    }
  }

  #ask(request: string, call: CallKey): boolean {
    if (this.#made.has(request)) return false
    this.#made.add(request)
    this.#asked.set(request, call)
    this.#pending.set(request, call)
    this.#scopes.get(call.subagentId ?? MAIN)?.calls.set(call.id, 'waiting')
    return true
  }

  /** Notes a call that the client has to execute. The same call a second time is no change. */
  #askClient(id: string): boolean {
    const isKnown = this.#asked.has(id)
    const call = keyOf(MAIN, id)
    this.#asked.set(id, call)
    this.#pending.set(id, call)
    this.#scopes.get(MAIN)?.calls.set(id, 'waiting')
    return !isKnown
  }

  #resolve(request: string): boolean {
    const call = this.#pending.get(request)
    if (!call) return false
    this.#pending.delete(request)
    this.#scopes.get(call.subagentId ?? MAIN)?.calls.set(call.id, 'open')
    return true
  }
}

/** The error of a tool call or a sub-agent whose worker died; its turn is repeated by another worker. */
export const VOID_CALL = 'The server that ran this has failed, and the turn began anew.'

const NOTHING = { calls: [], agents: [] }

/** After one of these events no earlier call is made again: the model was called again, or the turn or the run has ended. */
const ENDS_VOID: ReadonlySet<RunEvent['type']> = new Set([
  ...(['text_delta', 'thinking_delta', 'tool_use', 'turn_end'] as const),
  ...(['done', 'error', 'plan_queued'] as const),
])

const keyOf = (scope: string, id: string): CallKey => ({ subagentId: scope === MAIN ? undefined : scope, id })

/** The event of a sub-agent's run that is in a `subagent_event`. */
export function unwrapped({ event_type: type, ...fields }: SubAgentEvent): JsonObject & { type: string } {
  return { ...fields, type }
}
