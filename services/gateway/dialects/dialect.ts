import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { Log } from '../../../shared/kernel/log.ts'
import type { Authentication } from '../../../shared/platform/api/document.ts'
import type { Idempotency } from '../../../shared/platform/store/idempotency.ts'
import type { CheckValue, ReadBody } from '../bodies/body.ts'
import type { ConfigSurface } from '../routes/config/enabled.ts'
import type { FileSurface } from '../routes/files.ts'
import type { FlowSurface } from '../routes/flows/flows.ts'
import type { PlanSurface } from '../routes/plans.ts'
import type { StartOnce } from '../starting/start-once.ts'
import type { EventStreams } from '../streams/event-streams.ts'
import type { Relay } from '../streams/sse.ts'
import type { Conversations } from './shared/conversation.ts'

/** The parts that the routes of a dialect use. */
export type DialectDeps = {
  /** Where the routes are mounted. */
  basePath: string
  /** The credentials that every request needs. */
  authentication: Authentication
  broker: Broker
  conversations: Conversations
  once: StartOnce
  /** The Idempotency-Keys of run starts. */
  startKeys: Idempotency
  /** The streams of tenants' events. */
  eventStreams: EventStreams
  /** `undefined`: tenants have no models of their own. */
  config: Pick<ConfigSurface, 'settings'> | undefined
  /** `undefined` when the process has no store. */
  flows: FlowSurface | undefined
  /** `undefined` when the process has no store, or no plan queue. */
  plans: Pick<PlanSurface, 'calls'> | undefined
  /** `undefined` when the process has no store. */
  files: FileSurface | undefined
  /** The server's own model; `null` without one. */
  model: string | null
  /** The version of this server. */
  version: string
  /** The time between two keepalive comments in a stream without events. */
  keepaliveMs: number
  readBody: ReadBody
  checkValue: CheckValue
  relay: Relay
  log: Log
  /** Wraps a handler that begins new work. */
  admit(handle: RequestHandler): RequestHandler
  /**
   * Wraps a handler that begins new work or carries answers to permission requests; it calls `assertAdmitted` before
   * new work.
   */
  admitAnswers(handle: RequestHandler): RequestHandler
}
