import type { Schema } from './api.ts'

/** Text or thinking. `isOpen` until the whole block has come. */
export type TextBlock = { kind: 'text' | 'thinking'; text: string; isOpen: boolean }

/** A call of a tool. `output` and `isError` come with its result, `durationMs` only where `reduceRun` is told the time. */
export type ToolBlock = {
  kind: 'tool'
  id: string
  toolName: string
  input: Schema<'JsonObject'>
  progress?: { progress: number; detail: string }
  output?: string
  isError?: boolean
  startedAt?: number
  durationMs?: number
}

/** A sub-agent at work, with its own blocks, in which its own sub-agents stand. */
export type SubagentBlock = {
  kind: 'subagent'
  id: string
  description?: string
  model?: string
  status: Schema<'SubagentEndData'>['status']
  startedAt: number
  durationMs?: number
  result?: string
  error?: string
  blocks: readonly Block[]
}

export type Block = TextBlock | ToolBlock | SubagentBlock

/** A permission request, pending or decided. `ended`: the run ended first. */
export type PermissionView = {
  id: string
  toolName: string
  toolUseId: string
  input: Schema<'JsonObject'>
  message: string
  preview?: Schema<'PermissionPreview'>
  expiresAt: string
  subagentId?: string
  state: 'pending' | 'allowed' | 'denied' | 'ended'
  how?: Schema<'PermissionResolvedData'>['how']
  by?: string
  reason?: string
}

/** What has been used: turn by turn, and from the end on in all, with what summaries used. */
export type UsageView = {
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  costUsd: number
  turns: number
}

export type RunEnd =
  | { status: 'done'; stopReason: Schema<'DoneData'>['stop_reason'] }
  | { status: 'plan_queued'; planId?: string; note?: string }
  | ({ status: 'failed'; message: string } & Pick<Schema<'ErrorData'>, 'code' | 'suggestion' | 'retryable'>)

/** A run as it can be shown. Parts that an event does not change stay the same objects. */
export type RunView = {
  /** `waiting`: for an answer to a permission request. */
  status: 'running' | 'waiting' | RunEnd['status']
  lastEventId: number
  turn: number
  model?: string
  blocks: readonly Block[]
  permissions: readonly PermissionView[]
  warnings: readonly Schema<'WarningData'>[]
  usage: UsageView
  end?: RunEnd
  /** The sub-agents that wait for the plain form of a request that has come wrapped, by the request's id. */
  askedBy: Readonly<Record<string, string>>
}

/** A run before its first event. */
export const EMPTY_RUN: RunView = {
  status: 'running',
  lastEventId: 0,
  turn: 0,
  blocks: [],
  permissions: [],
  warnings: [],
  usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, costUsd: 0, turns: 0 },
  askedBy: {},
}
