import type { Schema, TenantEvent } from './api.ts'
import { createReads, type ListPages, pages, type Reads } from './http/pages.ts'
import { createRaw, type Raw } from './http/raw.ts'
import { type CallOptions, type EngineOptions, Transport } from './http/transport.ts'
import { createFlows, type Flows } from './resources/flows.ts'
import { createPermissions, type Permissions } from './resources/permissions.ts'
import { createPlans, type Plans } from './resources/plans.ts'
import { createRuns, type Runs } from './resources/runs.ts'
import { createSessions, type Sessions } from './resources/sessions.ts'
import { type TenantEventsOptions, tenantEvents } from './resources/tenant-events.ts'
import type { Typed } from './run/answer-schema.ts'
import type { RunOptions, RunStream } from './run/run-stream.ts'

export type { Paths, RunEvent, Schema, TenantEvent, TenantEventName } from './api.ts'
export { AgentEngineError, ApiError, ConnectionFailed, RunFailed, RunLost } from './errors.ts'
export type { Page, Pages } from './http/pages.ts'
export type { PathWith, Raw, RawAnswer, RawInit, UntypedInit } from './http/raw.ts'
export { type CallOptions, type EngineOptions, type Query, Transport } from './http/transport.ts'
export { createEstimates } from './resources/estimates.ts'
export { createFiles, type Files, type UploadOptions } from './resources/files.ts'
export type { FlowEvent, FlowOutcome, FlowRun, FlowRunOptions, Flows } from './resources/flows.ts'
export type { PermissionReply, Permissions } from './resources/permissions.ts'
export type { PlanEvent, PlanHandle, PlanProgress, PlanProgressStep } from './resources/plan-handle.ts'
export type { Plans } from './resources/plans.ts'
export { createRuns, type Runs, type StartRun } from './resources/runs.ts'
export { createSessions, type SendMessage, type Session, type Sessions } from './resources/sessions.ts'
export type { TenantEventsOptions } from './resources/tenant-events.ts'
export type { StandardSchema, Typed } from './run/answer-schema.ts'
export { makeCalls, type OnToolCall, type ToolCall } from './run/client-call.ts'
export type { PermissionAsk, PermissionRequest, Resolution } from './run/permission-ask.ts'
export type { RunResult } from './run/run-end.ts'
export type { FollowOptions, OnPermission, RunOptions, RunStream } from './run/run-stream.ts'
export { reduceRun } from './view/reduce-run.ts'
export {
  type ArtifactBlock,
  type Block,
  EMPTY_RUN,
  type PermissionView,
  type RunEnd,
  type RunView,
  type SteerBlock,
  type SubagentBlock,
  type TextBlock,
  type ToolBlock,
  type UsageView,
} from './view/run-view.ts'

/** A client of the agent engine's API. Names in `data`, bodies and answers are those of the wire format; everything else is camelCase. */
export class AgentEngine {
  declare readonly runs: Runs
  declare readonly sessions: Sessions
  declare readonly permissions: Permissions
  declare readonly flows: Flows
  declare readonly plans: Plans
  /** The usage by hour or day. */
  declare readonly usage: ListPages<Schema<'UsageRow'>>
  /** The records of flows that have run. */
  declare readonly dispatches: Reads<Schema<'Dispatch'>, Schema<'DispatchSummary'>>
  /** Every other endpoint, typed by its path. */
  declare readonly raw: Raw
  readonly #transport: Transport

  constructor(options: EngineOptions) {
    const transport = new Transport(options)
    this.#transport = transport
    this.runs = createRuns(transport)
    this.sessions = createSessions(transport)
    this.permissions = createPermissions(transport)
    this.flows = createFlows(transport)
    this.plans = createPlans(transport)
    this.usage = pages(transport, '/usage')
    this.dispatches = createReads(transport, '/dispatches', 'trace_id')
    this.raw = createRaw(transport)
  }

  /** A run, which starts when it is read: as events, as text, or with `result()`. With `schema` its output is a value that fits the schema. */
  run<T = unknown>(body: Typed<Schema<'RunRequest'>, T>, options?: RunOptions): RunStream<T>
  run(body: Schema<'RunRequest'>, options?: RunOptions): RunStream
  run(body: Schema<'RunRequest'>, options?: RunOptions): RunStream {
    return this.runs.run(body, options)
  }

  /** The events of the tenant's runs, permission requests, plans, flows and settings, until the signal is aborted or the loop is left. */
  events(options: TenantEventsOptions = {}): AsyncGenerator<TenantEvent, void, undefined> {
    return tenantEvents(this.#transport, options)
  }

  /** The caller's tenant, subject and scopes, and the server's features and limits. */
  me(options?: CallOptions): Promise<Schema<'MeResponse'>> {
    return this.#transport.json('GET', '/me', { ...options, has: 'tenant' })
  }

  /** Converts a time of the server, such as `expires_at`, to this machine's clock, by the difference that the newest answer has shown. */
  localTime(serverTime: string): Date {
    return this.#transport.localTime(serverTime)
  }
}
