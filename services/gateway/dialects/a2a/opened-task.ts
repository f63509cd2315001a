import type { Request, Response } from 'express'
import type { JsonObject, RunEvent } from '../../../../shared/kernel/events.ts'
import type { Streamed } from '../../streams/sse.ts'
import type { Fields } from '../shared/fields.ts'
import type { Projection } from '../shared/projection.ts'
import { readResponse, type Source, streamOf } from '../shared/response-stream.ts'
import { type RpcAnswer, RpcError, type RpcId } from './rpc.ts'
import { rpcWire } from './rpc-wire.ts'
import type { TaskRef } from './task-id.ts'

/** One request of a client: `id` is the JSON-RPC id. */
export type Call = { req: Request; res: Response; id: RpcId; params: Fields }

/** A task whose events can be read once: as a stream of updates, or until it ends or waits for an answer. */
export type OpenedTask = {
  ref: TaskRef
  stream(id: RpcId): Streamed & { isOver(): boolean }
  /** With `isImmediate`, returns the task as it was when it was opened. */
  read(options: { signal: AbortSignal; isImmediate?: boolean }): Promise<JsonObject>
}

/** A task as it is now. */
export type SeenTask = {
  ref: TaskRef
  task: JsonObject
  isOver: boolean
  /** The permission requests that it waits for. */
  asked: readonly string[]
  /** Its messages, oldest first. */
  history(): Promise<JsonObject[]>
  follow(): Promise<OpenedTask>
}

type Opening<Event extends RunEvent> = {
  ref: TaskRef
  /** The events of the run from its first one. */
  source: Source
  /** Leaves a run that has just begun; it continues without a reader. */
  leave?: () => Promise<void>
  /** Makes the task from the events. */
  projection: Projection<RpcAnswer, Event> & { task: JsonObject }
}

export const opened = <Event extends RunEvent>({ ref, source, projection, leave }: Opening<Event>): OpenedTask => ({
  ref,
  stream: (id) => ({ runId: ref.runId, ...streamOf(source, projection, rpcWire(id)) }),
  async read({ signal, isImmediate = false }) {
    if (isImmediate) await leave?.()
    await readResponse(source, projection, { signal, ...(isImmediate && { until: 0 }) })
    return projection.task
  },
})

export const ended = () =>
  new RpcError('unsupported_operation', 'the task has ended: send a message with its contextId alone')
