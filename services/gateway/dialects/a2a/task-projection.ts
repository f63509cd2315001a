import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type {
  AgentEvent,
  Artifact as DeliveredFile,
  ErrorEvent,
  FlowEvent,
  JsonObject,
} from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import { type OpenCalls, unwrapped } from '../shared/open-calls.ts'
import type { Projection } from '../shared/projection.ts'
import { type RpcAnswer, RpcError, rpcFailure } from './rpc.ts'
import { type Artifact, hasEnded, type Part, type Status, type TaskState, TaskWriter } from './task.ts'
import type { TaskRef } from './task-id.ts'

export type TaskEvent = AgentEvent | FlowEvent
type Of<Type extends TaskEvent['type']> = Extract<TaskEvent, { type: Type }>

/**
 * Makes a task of A2A from a run: the task itself as far as the run has come, and the updates of a stream, the first of which is the
 * task after event number `since`.
 */
export class TaskProjection implements Projection<RpcAnswer, TaskEvent> {
  readonly #write: TaskWriter
  readonly #requests = new Map<string, Of<'permission_request'>>()
  readonly #artifacts: Artifact[] = []
  /** By the number of a turn: how many artifacts there were before it. */
  readonly #before = new Map<number, number>()
  #since: number
  #open: Artifact | undefined
  #text = ''
  #status: Status
  #metadata: JsonObject | undefined
  #calls: OpenCalls | undefined
  #isShown = false
  #isCut = false

  constructor(ref: TaskRef, { since = 0, isQueued = false }: { since?: number; isQueued?: boolean } = {}) {
    this.#write = new TaskWriter(ref)
    this.#since = since
    this.#status = { state: isQueued ? 'SUBMITTED' : 'WORKING' }
  }

  get task(): JsonObject {
    return this.#write.task({ status: this.#now, artifacts: this.#artifacts, metadata: this.#metadata })
  }

  get isOver(): boolean {
    return hasEnded(this.#status)
  }

  /** Whether the events are no longer kept, so that the task cannot be made from them. */
  get isCut(): boolean {
    return this.#isCut
  }

  /** The permission requests that the task waits for; none while any of its calls is still running. */
  get asked(): string[] {
    return this.#calls?.isAtRest ? [...this.#calls.pending.keys()] : []
  }

  begin(): RpcAnswer[] {
    return this.#since === 0 ? this.#show() : []
  }

  /** Begins the response at this point. Its first answer is the task, sent with the next event. */
  restart(): void {
    this.#since = 0
  }

  take({ seq, event }: Numbered<TaskEvent>, calls: OpenCalls): RpcAnswer[] {
    this.#calls = calls
    const begun = this.#work()
    const folded = this.#fold(event, seq)
    const updates = begun.length > 0 ? [...begun, ...folded] : folded
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

  /** Shows that a message which waited behind others of its context is now being answered. */
  #work(): RpcAnswer[] {
    if (this.#status.state !== 'SUBMITTED') return []
    this.#status = { state: 'WORKING' }
    return [this.#write.statusUpdate(this.#status)]
  }

  #show(): RpcAnswer[] {
    this.#isShown = true
    return [{ result: { task: this.task } }]
  }

  #fold(event: TaskEvent, seq: number): RpcAnswer[] {
    switch (event.type) {
      case 'text_delta':
        return this.#append(event.text, seq)
      case 'text':
        return this.#close(event.text, seq)
      case 'tool_use':
      case 'steered':
        return this.#tell([{ data: event }], seq)
      case 'artifact':
        return this.#deliver(fileOf(event))
      case 'permission_request':
        return this.#ask(event)
      case 'subagent_event':
        return this.#nested(event, seq)
      case 'warning':
        return [...this.#withdraw(event), ...this.#tell([{ text: event.message }], seq)]
      case 'turn_start':
        this.#before.set(event.turn_number, this.#artifacts.length)
        return []
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
      case 'turn_end':
      case 'subagent_start':
      case 'subagent_end':
      case 'started':
        return []
    }
  }

  /** A turn is repeated, so its texts so far are void. An update that does not append replaces the client's copy of an artifact. */
  #withdraw({ code, detail }: Of<'warning'>): RpcAnswer[] {
    const count = code === 'run_recovered' ? this.#before.get(Number(detail['turn_number'])) : undefined
    if (count === undefined) return []
    this.#open = undefined
    const isVoid = this.#artifacts.splice(count)
    return isVoid.map((artifact) =>
      this.#write.artifactUpdate({ ...artifact, parts: [{ text: '' }] }, { append: false, lastChunk: true }),
    )
  }

  /** Each block of text is an artifact. */
  #append(text: string, seq: number): RpcAnswer[] {
    const opened = this.#open
    const artifact = opened ?? this.#begin(seq)
    this.#text += text
    artifact.parts = [{ text: this.#text }]
    return [this.#write.artifactUpdate({ ...artifact, parts: [{ text }] }, { append: opened !== undefined })]
  }

  #begin(seq: number): Artifact {
    this.#text = ''
    this.#open = { artifactId: `text-${seq}`, name: 'text', parts: [] }
    this.#artifacts.push(this.#open)
    return this.#open
  }

  /** The events of a run that ended long ago have no deltas. The last deltas of a block may be missing, too (D32.7a). */
  #close(text: string, seq: number): RpcAnswer[] {
    const opened = this.#open
    const rest = opened ? text.slice(this.#text.length) : text
    const artifact = opened ?? this.#begin(seq)
    artifact.parts = [{ text }]
    this.#open = undefined
    const chunk = { append: opened !== undefined, lastChunk: true } as const
    return [this.#write.artifactUpdate({ ...artifact, parts: [{ text: rest }] }, chunk)]
  }

  #deliver(file: DeliveredFile): RpcAnswer[] {
    const { file_id: id, name: filename, media_type: mediaType, title = filename } = file
    const parts: Part[] = [{ url: `files/${id}/content`, filename, mediaType }, { data: file }]
    const artifact = { artifactId: id, name: title, parts }
    this.#artifacts.push(artifact)
    return [this.#write.artifactUpdate(artifact, { append: false, lastChunk: true })]
  }

  /** The output of a flow is an artifact. */
  #result({ verdict, output, problems = [], flow_id, artifacts = [] }: Of<'result'>, seq: number): RpcAnswer[] {
    const delivered = artifacts.flatMap((each) => this.#deliver(each))
    if (verdict !== 'ok') {
      const listed = problems.map(({ path, message }) => `\n${path}: ${message}`).join('')
      const text = `the output of ${flow_id} does not fit its schema${listed}`
      return [...delivered, ...this.#end('FAILED', [{ text }], seq)]
    }
    const artifact = { artifactId: 'output', name: 'output', parts: [{ data: output }] }
    this.#artifacts.push(artifact)
    return [
      ...delivered,
      this.#write.artifactUpdate(artifact, { append: false, lastChunk: true }),
      ...this.#end('COMPLETED', [], seq),
    ]
  }

  #nested(wrapped: Of<'subagent_event'>, seq: number): RpcAnswer[] {
    const event = unwrapped(wrapped) as AgentEvent
    if (event.type === 'permission_request') return this.#ask(event)
    return event.type === 'tool_use' ? this.#tell([{ data: { ...event, subagent_id: wrapped.subagent_id } }], seq) : []
  }

  #ask(event: Of<'permission_request'>): [] {
    this.#requests.set(event.id, event)
    return []
  }

  #tell(parts: Part[], seq: number): RpcAnswer[] {
    return [this.#update({ state: 'WORKING', message: this.#write.message(`${seq}`, parts) })]
  }

  #last(event: Of<'plan_queued' | 'done' | 'error'>, seq: number): RpcAnswer[] {
    this.#isCut = event.type === 'error' && event.code === 'stream_gap'
    if (event.type === 'error')
      return this.#end(isCancel(event) ? 'CANCELED' : 'FAILED', [{ text: textOf(event) }], seq)
    if (event.type === 'plan_queued') return this.#end('COMPLETED', [{ data: event }], seq)
    this.#metadata = usageOf(event)
    return this.#end('COMPLETED', [], seq)
  }

  #end(state: TaskState, parts: Part[], seq: number): RpcAnswer[] {
    this.#status = { state, ...(parts.length > 0 && { message: this.#write.message(`${seq}`, parts) }) }
    return [this.#update(this.#status)]
  }

  /** The permission requests as a person needs to see them to decide, with the ids for the answer. */
  #question(asked: readonly string[]): JsonObject {
    const requests = asked.flatMap((id) => this.#requests.get(id) ?? [])
    const texts = requests.map(({ message }) => ({ text: message }))
    const permissions = requests.map(({ type: _type, ...request }) => request)
    return this.#write.message(`ask-${asked[0]}`, [...texts, { data: { permissions } }])
  }

  #update(status: Status): RpcAnswer {
    return this.#write.statusUpdate(status, status.state === 'COMPLETED' ? this.#metadata : undefined)
  }
}

const isCancel = ({ code }: ErrorEvent): boolean => code === 'cancelled' || code === 'session_deleted'

const textOf = ({ code, error, suggestion }: Pick<ErrorEvent, 'code' | 'error' | 'suggestion'>) =>
  `${code}: ${error}. ${suggestion}`

function usageOf({ type: _type, stop_reason: _reason, output: _output, ...usage }: Of<'done'>): JsonObject {
  return { usage }
}

const fileOf = ({ type: _type, ...file }: Of<'artifact'>): DeliveredFile => file
