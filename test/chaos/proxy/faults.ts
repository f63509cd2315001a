import type { Random } from '../../harness/seed.ts'
import type { PubSubMessage } from '../resp.ts'

export type Direction = 'toServer' | 'toClient'

/** A message as a drop rule sees it: `number` counts the messages of the whole proxy from 1, the lost ones included. */
export type SeenMessage = PubSubMessage & { number: number }

/** Is this message to be lost? Asked once for each, in order. */
export type DropRule = (message: SeenMessage) => boolean

/** What is wrong with a link; all of it at once where several are given, nothing where none is. */
export type Faults = {
  /** Connections stay open and carry nothing that way: what was sent arrives late, or never, but is not lost within one. */
  blackhole?: Direction | 'both'
  /** New connections are refused. */
  refuse?: boolean
  /** Every byte comes this much later, plus up to `jitterMs` more; never out of order. */
  latencyMs?: number
  jitterMs?: number
  /** In each direction of each connection. */
  bytesPerSec?: number
  /** Bytes travel in pieces of 1 up to this many, each sent by itself. */
  sliceBytes?: number
  drop?: DropRule
}

export const loseEvery =
  (n: number): DropRule =>
  ({ number }) =>
    number % n === 0

export const loseByChance =
  (probability: number, random: Random): DropRule =>
  () =>
    random.chance(probability)
