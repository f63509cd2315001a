import type { RunSummary } from '../../../cluster/commands/runs.ts'
import { isTerminal, type RunEvent, type WarningEvent } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import { truncate } from '../../../kernel/text.ts'
import type { CapturedEvent } from './captured-events.ts'

/** A call of a model or a tool, a wait for a permission, or the work of a sub-agent. */
export type Phase = NonNullable<RunSummary['phases']>[number]

/**
 * The phases of a run by the times of its events (D20.5): turns, calls of models and tools, waits for permissions. The
 * last event ends all open phases.
 */
export function phasesOf(events: readonly CapturedEvent[]): Phase[] {
  const reader = new PhaseReader()
  for (const { atMs, event } of events) reader.note(event, atMs)
  return reader.phases
}

const MAX_PHASES = 300
const NAME_CHARS = 120

/** The id of the agent of a phase: that of a sub-agent, or `undefined` for the agent of the run. */
type Agent = string | undefined

/** The id of a call, and the path in its input. */
function factsOf({ id, input }: { readonly [field: string]: unknown }): Pick<Phase, 'tool_use_id' | 'path'> {
  const path = isJsonObject(input) ? input['path'] : undefined
  const isShort = typeof path === 'string' && path.length <= PATH_CHARS
  return { tool_use_id: truncate(String(id), NAME_CHARS, ''), ...(isShort && { path }) }
}

const PATH_CHARS = 256

class PhaseReader {
  readonly phases: Phase[] = []
  readonly #open = new Map<string, Phase>()
  readonly #turns = new Map<Agent, number>()

  note(event: RunEvent, atMs: number): void {
    if (event.type === 'subagent_event') this.#noteOf(event.subagent_id, { ...event, type: event.event_type }, atMs)
    else if (event.type === 'subagent_end') this.#endAll(atMs, event.subagent_id)
    else if (isTerminal(event)) this.#endRun(atMs, event.type === 'error' && event.code !== 'cancelled')
    else if (event.type === 'subagent_start') {
      const { subagent_id: agent, description = 'sub-agent' } = event
      this.#begin('', { kind: 'subagent', name: description, agent, atMs })
    } else this.#noteOf(undefined, event, atMs)
  }

  /** A sub-agent's event has no TypeScript type of its own, so its fields are read by name. */
  #noteOf(agent: Agent, event: { type: string } & { readonly [field: string]: unknown }, atMs: number): void {
    const call = `${agent} ${String(event['id'])}`
    const name = String(event['tool_name'])
    if (event.type === 'turn_start') {
      this.#turns.set(agent, Number(event['turn_number']))
      this.#begin(String(agent), { kind: 'model', name: String(event['model']), agent, atMs })
    } else if (event.type === 'tool_use') {
      this.#end('model', String(agent), atMs)
      const phase = this.#begin(call, { kind: 'tool', name, agent, atMs })
      if (phase) Object.assign(phase, factsOf(event))
    } else if (event.type === 'tool_result') {
      const tool = this.#end('tool', call, atMs)
      if (tool && event['is_error'] === true) tool.failed = true
    } else if (event.type === 'turn_end') this.#end('model', String(agent), atMs)
    // The request of a sub-agent and its decision are also sent as events of the run.
    else if (event.type === 'permission_request')
      this.#begin(String(event['id']), { kind: 'permission', name, agent, atMs })
    else if (event.type === 'permission_resolved') this.#end('permission', String(event['id']), atMs)
    else if (event.type === 'warning') this.#noteWarning(event as unknown as WarningEvent, agent, atMs)
  }

  /** The model is called again after a pause, or another model takes over the turn. */
  #noteWarning({ code, detail }: WarningEvent, agent: Agent, atMs: number): void {
    if (code === 'transport_retrying') {
      this.#begin(`${agent} ${atMs}`, { kind: 'retry', name: String(detail['reason']), agent, atMs })
      this.#end('retry', `${agent} ${atMs}`, atMs + Number(detail['delay_ms']))
    } else if (code === 'provider_failover') {
      const left = this.#end('model', String(agent), atMs)
      if (!left) return
      left.failed = true
      const { model } = detail['to'] as { model: string }
      this.#begin(String(agent), { kind: 'model', name: model, agent, atMs })
    }
  }

  #begin(id: string, begun: { kind: Phase['kind']; name: string; agent: Agent; atMs: number }): Phase | undefined {
    const { kind, name, agent, atMs } = begun
    const key = `${kind} ${kind === 'subagent' ? agent : id}`
    if (this.phases.length === MAX_PHASES || this.#open.has(key)) return undefined
    const turn = this.#turns.get(agent) ?? 0
    const phase: Phase = { kind, name: truncate(name, NAME_CHARS, ''), turn, started_ms: atMs, ended_ms: null }
    if (agent !== undefined) phase.subagent_id = agent
    this.phases.push(phase)
    this.#open.set(key, phase)
    return phase
  }

  #end(kind: Phase['kind'], id: string, atMs: number): Phase | undefined {
    const phase = this.#open.get(`${kind} ${id}`)
    if (phase) phase.ended_ms = atMs
    this.#open.delete(`${kind} ${id}`)
    return phase
  }

  /** If a run fails while a model answers, the model call is the cause. A cancelled run does not wait for the end of a pause. */
  #endRun(atMs: number, hasFailed: boolean): void {
    for (const phase of this.#open.values()) if (hasFailed && phase.kind === 'model') phase.failed = true
    this.#endAll(atMs)
    for (const phase of this.phases)
      if (phase.kind === 'retry') phase.ended_ms = Math.min(phase.ended_ms ?? atMs, Math.max(atMs, phase.started_ms))
  }

  /** Ends the open phases of all agents, or of one agent. */
  #endAll(atMs: number, agent?: string): void {
    for (const [key, phase] of this.#open) {
      if (agent !== undefined && phase.subagent_id !== agent) continue
      phase.ended_ms = atMs
      this.#open.delete(key)
    }
  }
}
