import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { ReadBody } from '../bodies/body.ts'
import type { Relay } from '../streams/sse.ts'
import type { Conversations } from './shared/conversation.ts'

/** What the routes of a dialect are made of. */
export type DialectDeps = {
  broker: Broker
  conversations: Conversations
  readBody: ReadBody
  relay: Relay
  /** Wraps what begins new work. */
  admit(handle: RequestHandler): RequestHandler
}
