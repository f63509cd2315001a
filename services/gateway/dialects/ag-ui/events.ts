import type { AgentEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import { frameJson } from '../../../../shared/kernel/json.ts'
import type { CallKey } from '../shared/open-calls.ts'

export type Of<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>
export type AgUiEvent = JsonObject & { type: string }

export const AG_UI_WIRE = {
  render: (events: readonly AgUiEvent[]) => events.map((event) => `data: ${frameJson(event)}\n\n`).join(''),
  end: '',
}

/** An event of our own, for which AG-UI has none. */
export const custom = ({ type, ...value }: AgentEvent): AgUiEvent => ({ type: 'CUSTOM', name: type, value })

/** A sub-agent's calls have ids of their own, as another one may use the same. */
export const callId = ({ subagentId, id }: CallKey): string => (subagentId === undefined ? id : `${subagentId}/${id}`)
