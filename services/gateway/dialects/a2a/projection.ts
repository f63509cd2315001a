import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, ErrorEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import { type OpenCalls, unwrapped } from '../shared/open-calls.ts'
import type { ProjectedEvent, Projection } from '../shared/projection.ts'
import { type RpcAnswer, RpcError, rpcFailure } from './rpc.ts'
import { type TaskRef, taskId } from './task-id.ts'

type Of<Type extends ProjectedEvent['type']> = Extract<ProjectedEvent, { type: Type }>
export type TaskState = 'WORKING' | 'COMPLETED' | 'FAILED' | 'CANCELED' | 'INPUT_REQUIRED'
type Part = { text: string } | { data: unknown }
type Artifact = { artifactId: string; name: string; parts: Part[] }
type Status = { state: TaskState; message?: JsonObject }

/**
 * Makes a task of A2A from a run: the task itself as far as the run has come, and the updates of a stream, whose first one is the task
 * as it is behind event number `since`.
 */
export class TaskProjection implements Projection<RpcAnswer, ProjectedEvent> {
  readonly #ref: TaskRef
  readonly #requests = new Map<string, Of<'permission_request'>>()
  readonly #artifacts: Artifact[] = []
  #since: number
  #open: Artifact | undefined
  #text = ''
  #status: Status = { state: 'WORKING' }
  #metadata: JsonObject | undefined
  #calls: OpenCalls | undefined
  #isShown = false

  constructor(ref: TaskRef, { since = 0 }: { since?: number } = {}) {
    this.#ref = ref
    this.#since = since
  }

  get task(): JsonObject {
    return {
      ...{ id: taskId(this.#ref), contextId: this.#ref.contextId, status: statusOf(this.#now) },
      artifacts: this.#artifacts,
      ...(this.#metadata && { metadata: this.#metadata }),
    }
  }

  get isOver(): boolean {
    return ['COMPLETED', 'FAILED', 'CANCELED'].includes(this.#status.state)
  }

  /** The permission requests that the task waits for; none while anything else is at work. */
  get asked(): string[] {
    return this.#calls?.isAtRest ? [...this.#calls.pending.keys()] : []
  }

  begin(): RpcAnswer[] {
    return this.#since === 0 ? this.#show() : []
  }

  /** The response begins here: with the task, when its next event has come. */
  restart(): void {
    this.#since = 0
  }

  take({ seq, event }: Numbered<ProjectedEvent>, calls: OpenCalls): RpcAnswer[] {
    this.#calls = calls
    const updates = this.#fold(event, seq)
    if (seq < this.#since) return this.isOver ? this.#show() : []
    return this.#isShown ? updates : this.#show()
  }

  pause(): RpcAnswer[] {
    return [this.#update(this.#now)]
  }

  cut(code: ReaderFailure): RpcAnswer[] {
    return [rpcFailure(new RpcError('internal', textOf(readerFailure(code))))]
  }

  get #now(): Status {
    const { asked } = this
    return asked.length === 0 ? this.#status : { state: 'INPUT_REQUIRED', message: this.#question(asked) }
  }

  #show(): RpcAnswer[] {
    this.#isShown = true
    return [{ result: { task: this.task } }]
  }

  #fold(event: ProjectedEvent, seq: number): RpcAnswer[] {
    switch (event.type) {
      case 'text_delta':
        return this.#append(event.text, seq)
      case 'text':
        return this.#close(event.text, seq)
      case 'tool_use':
        return this.#tell([{ data: event }], seq)
      case 'permission_request':
        this.#requests.set(event.id, event)
        return []
      case 'subagent_event':
        return this.#nested(event, seq)
      case 'warning':
        return this.#tell([{ text: event.message }], seq)
      case 'progress':
        return this.#tell([{ text: `${event.agent}: turn ${event.turn_number}` }], seq)
      case 'result':
        return this.#result(event, seq)
      case 'plan_queued':
      case 'done':
      case 'error':
        return this.#last(event, seq)
      case 'thinking_delta':
      case 'thinking':
      case 'tool_progress':
      case 'tool_result':
      case 'permission_resolved':
      case 'turn_start':
      case 'turn_end':
      case 'subagent_start':
      case 'subagent_end':
      case 'started':
        return []
    }
  }

  /** Each block of text is an artifact. */
  #append(text: string, seq: number): RpcAnswer[] {
    const opened = this.#open
    const artifact = opened ?? this.#begin(seq)
    this.#text += text
    artifact.parts = [{ text: this.#text }]
    return [this.#artifact({ ...artifact, parts: [{ text }] }, { append: opened !== undefined })]
  }

  #begin(seq: number): Artifact {
    this.#text = ''
    this.#open = { artifactId: `text-${seq}`, name: 'text', parts: [] }
    this.#artifacts.push(this.#open)
    return this.#open
  }

  /** The events of a run that ended long ago have no deltas. */
  #close(text: string, seq: number): RpcAnswer[] {
    const opened = this.#open
    const artifact = opened ?? this.#begin(seq)
    artifact.parts = [{ text }]
    this.#open = undefined
    const chunk = { append: opened !== undefined, lastChunk: true } as const
    return [this.#artifact({ ...artifact, parts: [{ text: opened ? '' : text }] }, chunk)]
  }

  #artifact(artifact: Artifact, chunk: { append: boolean; lastChunk?: true }): RpcAnswer {
    return { result: { artifactUpdate: { ...this.#ids, artifact, ...chunk } } }
  }

  /** The output of a flow is an artifact. */
  #result({ verdict, output, problems = [], flow_id }: Of<'result'>, seq: number): RpcAnswer[] {
    if (verdict !== 'ok') {
      const listed = problems.map(({ path, message }) => `\n${path}: ${message}`).join('')
      return this.#end('FAILED', [{ text: `the output of ${flow_id} does not fit its schema${listed}` }], seq)
    }
    const artifact = { artifactId: 'output', name: 'output', parts: [{ data: output }] }
    this.#artifacts.push(artifact)
    return [this.#artifact(artifact, { append: false, lastChunk: true }), ...this.#end('COMPLETED', [], seq)]
  }

  #nested(wrapped: Of<'subagent_event'>, seq: number): RpcAnswer[] {
    const event = unwrapped(wrapped) as AgentEvent
    if (event.type === 'permission_request') this.#requests.set(event.id, event)
    return event.type === 'tool_use' ? this.#tell([{ data: { ...event, subagent_id: wrapped.subagent_id } }], seq) : []
  }

  #tell(parts: Part[], seq: number): RpcAnswer[] {
    return [this.#update({ state: 'WORKING', message: this.#message(`${seq}`, parts) })]
  }

  #last(event: Of<'plan_queued' | 'done' | 'error'>, seq: number): RpcAnswer[] {
    if (event.type === 'error')
      return this.#end(isCancel(event) ? 'CANCELED' : 'FAILED', [{ text: textOf(event) }], seq)
    if (event.type === 'plan_queued') return this.#end('COMPLETED', [{ data: event }], seq)
    this.#metadata = usageOf(event)
    return this.#end('COMPLETED', [], seq)
  }

  #end(state: TaskState, parts: Part[], seq: number): RpcAnswer[] {
    this.#status = { state, ...(parts.length > 0 && { message: this.#message(`${seq}`, parts) }) }
    return [this.#update(this.#status)]
  }

  /** The request as a person has to see it to decide, with the ids for the answer. */
  #question(asked: readonly string[]): JsonObject {
    const requests = asked.flatMap((id) => this.#requests.get(id) ?? [])
    const texts = requests.map(({ message }) => ({ text: message }))
    const permissions = requests.map(({ type: _type, ...request }) => request)
    return this.#message(`ask-${asked[0]}`, [...texts, { data: { permissions } }])
  }

  #message(name: string, parts: Part[]): JsonObject {
    return { messageId: `${this.#ref.runId}-${name}`, role: 'ROLE_AGENT', parts, ...this.#ids }
  }

  #update(status: Status): RpcAnswer {
    const { state } = status
    const usage = state === 'COMPLETED' && this.#metadata ? { metadata: this.#metadata } : {}
    return { result: { statusUpdate: { ...this.#ids, status: statusOf(status), ...usage } } }
  }

  get #ids() {
    return { taskId: taskId(this.#ref), contextId: this.#ref.contextId }
  }
}

const statusOf = ({ state, ...rest }: Status) => ({ state: `TASK_STATE_${state}`, ...rest })

const isCancel = ({ code }: ErrorEvent): boolean => code === 'cancelled' || code === 'session_deleted'

const textOf = ({ code, error, suggestion }: Pick<ErrorEvent, 'code' | 'error' | 'suggestion'>) =>
  `${code}: ${error}. ${suggestion}`

function usageOf({ type: _type, stop_reason: _reason, ...usage }: Of<'done'>): JsonObject {
  return { usage }
}
