import type { RunEvent, Schema } from '../api.ts'

/** Text or thinking. `isOpen` is true until the whole block has come. */
export type TextBlock = { kind: 'text' | 'thinking'; text: string; isOpen: boolean }

/** A call of a tool. `durationMs` is set only if `reduceRun` gets the time. */
export type ToolBlock = {
  kind: 'tool'
  call: Schema<'ToolUseData'>
  /** The newest progress. */
  progress?: Schema<'ToolProgressData'>
  result?: Schema<'ToolResultData'>
  startedAt?: number | undefined
  durationMs?: number
}

/** A sub-agent, which is running until `end` is set. Its blocks include its own sub-agents. */
export type SubagentBlock = {
  kind: 'subagent'
  start: Schema<'SubagentStartData'>
  end?: Schema<'SubagentEndData'>
  blocks: readonly Block[]
}

/** A text that a person has sent to the running run. */
export type SteerBlock = { kind: 'steered' } & Schema<'SteeredData'>

/** A file that the run has delivered: `GET /files/{file_id}/content` sends it. */
export type ArtifactBlock = { kind: 'artifact' } & Schema<'ArtifactData'>

export type Block = TextBlock | ToolBlock | SubagentBlock | SteerBlock | ArtifactBlock

/** A permission request. `ended`: the run ended before it was decided. */
export type PermissionView = {
  request: Schema<'PermissionRequestData'>
  /** The sub-agent whose call it is. */
  subagentId?: string | undefined
  state: 'pending' | 'allowed' | 'denied' | 'ended'
  resolution?: Schema<'PermissionResolvedData'>
}

/** The usage: the sum of the turns, and from the end on the total, including summaries. */
export type UsageView = {
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cost_usd: number
  turn_count: number
}

/** The last event of a run. */
export type RunEnd = Extract<RunEvent, { event: 'done' | 'error' | 'plan_queued' }>

/** A run as it can be shown. Data from events has the events' field names. Parts that an event does not change stay the same objects. */
export type RunView = {
  /** `waiting`: the run waits for an answer to a permission request. */
  status: 'running' | 'waiting' | 'done' | 'failed' | 'plan_queued'
  lastEventId: number
  /** The newest turn. */
  turn?: Schema<'TurnStartData'>
  /** Its last place in the queue of its tenant's runs. The run has begun when `lastEventId` is above 0. */
  waiting?: Schema<'WaitingData'>
  blocks: readonly Block[]
  permissions: readonly PermissionView[]
  warnings: readonly Schema<'WarningData'>[]
  usage: UsageView
  end?: RunEnd
  /** The sub-agents whose requests have come in a `subagent_event`, by the requests' ids. The plain event follows. */
  askedBy: Readonly<Record<string, string>>
  /** The state of the run before each of its turns, from which a turn that another server repeats continues. */
  turnStarts: readonly TurnStart[]
}

/** The state of the run before a turn. */
export type TurnStart = { turn: number; before: Pick<RunView, 'blocks' | 'permissions' | 'usage'> }

/** A run before its first event. */
export const EMPTY_RUN: RunView = {
  status: 'running',
  lastEventId: 0,
  blocks: [],
  permissions: [],
  warnings: [],
  usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cost_usd: 0, turn_count: 0 },
  askedBy: {},
  turnStarts: [],
}
