import type { Random } from '../../harness/seed.ts'
import type { PubSubMessage } from '../resp.ts'

export type Direction = 'toServer' | 'toClient'

/** A message for a drop rule. `number` counts the messages of the proxy from 1, dropped ones included. */
export type SeenMessage = PubSubMessage & { number: number }

/** Returns whether to drop a message. Called once for each message, in order. */
export type DropRule = (message: SeenMessage) => boolean

/** The faults of a link. Several may be active at the same time. */
export type Faults = {
  /** Connections stay open but carry nothing in this direction. The bytes are delivered when the fault ends. */
  blackhole?: Direction | 'both'
  /** New connections are refused. */
  refuse?: boolean
  /** Delay of every byte; `jitterMs` adds a random delay up to its value. The order is kept. */
  latencyMs?: number
  jitterMs?: number
  /** Bandwidth in each direction of each connection. */
  bytesPerSec?: number
  /** Bytes are sent in separate pieces of 1 to this many bytes. */
  sliceBytes?: number
  drop?: DropRule
}

export const dropEvery =
  (n: number): DropRule =>
  ({ number }) =>
    number % n === 0

export const dropByChance =
  (probability: number, random: Random): DropRule =>
  () =>
    random.chance(probability)
