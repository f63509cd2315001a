import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { RpcAnswer } from './rpc.ts'
import { type TaskRef, taskId } from './task-id.ts'

export type TaskState = 'SUBMITTED' | 'WORKING' | 'COMPLETED' | 'FAILED' | 'CANCELED' | 'INPUT_REQUIRED'
/** `url` is relative to the address of the endpoint. */
export type Part = { text: string } | { data: unknown } | { url: string; filename: string; mediaType: string }
export type Artifact = { artifactId: string; name: string; parts: Part[] }
/** How an artifact grows: in a stream its text comes in pieces. */
export type ArtifactUpdate = { artifact: Artifact; append: boolean; lastChunk?: true }
export type Status = { state: TaskState; message?: JsonObject; timestamp?: string }
export type TaskFields = { status: Status; artifacts: readonly Artifact[]; metadata?: JsonObject | undefined }

const ENDED: ReadonlySet<TaskState> = new Set(['COMPLETED', 'FAILED', 'CANCELED'])

export const hasEnded = ({ state }: Pick<Status, 'state'>): boolean => ENDED.has(state)

/** Formats a task and its updates as the protocol requires. */
export class TaskWriter {
  readonly #ref: TaskRef
  readonly #ids: { taskId: string; contextId: string }

  constructor(ref: TaskRef) {
    this.#ref = ref
    this.#ids = { taskId: taskId(ref), contextId: ref.contextId }
  }

  task({ status, artifacts, metadata }: TaskFields): JsonObject {
    const { taskId: id, contextId } = this.#ids
    return { id, contextId, status: statusOf(status), artifacts, ...(metadata && { metadata }) }
  }

  message(name: string, parts: readonly Part[], role: 'AGENT' | 'USER' = 'AGENT'): JsonObject {
    return { messageId: `${this.#ref.runId}-${name}`, role: `ROLE_${role}`, parts, ...this.#ids }
  }

  statusUpdate(status: Status, metadata?: JsonObject): RpcAnswer {
    return { result: { statusUpdate: { ...this.#ids, status: statusOf(status), ...(metadata && { metadata }) } } }
  }

  artifactUpdate(artifact: Artifact, chunk: Omit<ArtifactUpdate, 'artifact'>): RpcAnswer {
    return { result: { artifactUpdate: { ...this.#ids, artifact, ...chunk } } }
  }
}

const statusOf = ({ state, ...rest }: Status) => ({ state: `TASK_STATE_${state}`, ...rest })
