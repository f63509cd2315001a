import type { Schema } from '../../../../../shared/client/api.ts'
import type { FlowEvent } from '../../../../../shared/client/resources/flows.ts'

/** A running agent of a flow: its turns so far, and why its answers were rejected. */
export type AgentView = {
  name: string
  model: string
  turns: number
  tokens: number
  costUsd: number
  tries: readonly Schema<'OutputProblems'>[]
}

/** A run of a flow as it can be shown. */
export type FlowView = {
  started?: Schema<'FlowStartedData'>
  agents: readonly AgentView[]
  warnings: readonly Schema<'FlowWarningData'>[]
  result?: Schema<'FlowResultData'>
  error?: Schema<'ErrorData'>
}

export const EMPTY_FLOW: Readonly<FlowView> = { agents: [], warnings: [] }

/** The view after one more event. */
export function reduceFlow(view: FlowView, event: FlowEvent): FlowView {
  switch (event.event) {
    case 'waiting':
      return view
    case 'started':
      return { ...view, started: event.data }
    case 'progress':
      return { ...view, agents: withTurn(view.agents, event.data) }
    case 'warning':
      return { ...view, warnings: [...view.warnings, event.data] }
    case 'result':
      return { ...view, result: event.data }
    case 'error':
      return { ...view, error: event.data }
  }
}

function withTurn(agents: readonly AgentView[], turn: Schema<'FlowProgressData'>): readonly AgentView[] {
  const known = agents.find(({ name }) => name === turn.agent)
  const next: AgentView = {
    name: turn.agent,
    model: turn.model,
    turns: turn.turn_number,
    tokens: (known?.tokens ?? 0) + turn.input_tokens + turn.output_tokens,
    costUsd: (known?.costUsd ?? 0) + turn.cost_usd,
    tries: [...(known?.tries ?? []), ...(turn.problems ? [turn.problems] : [])],
  }
  return known ? agents.map((agent) => (agent === known ? next : agent)) : [...agents, next]
}
