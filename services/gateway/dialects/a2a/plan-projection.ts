import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { ErrorEvent, JsonObject, PlanEvent } from '../../../../shared/kernel/events.ts'
import type { PlanStatus } from '../../../../shared/work/plans/port.ts'
import type { PlanView } from '../../../../shared/work/plans/view.ts'
import type { Numbered } from '../../streams/run-events.ts'
import type { Projection } from '../shared/projection.ts'
import { type RpcAnswer, RpcError, rpcFailure } from './rpc.ts'
import { type Artifact, hasEnded, type Part, type Status, type TaskState, TaskWriter } from './task.ts'
import type { TaskRef } from './task-id.ts'

type StepEnded = Extract<PlanEvent, { type: 'step_ended' }>
type PlanEnded = Extract<PlanEvent, { type: 'plan_ended' }>
/** The events of a plan, with facts from its record: the output of a step that is done, and what the whole plan has used. */
export type PlanTaskEvent =
  | Exclude<PlanEvent, StepEnded | PlanEnded>
  | (StepEnded & { output?: string })
  | (PlanEnded & { usage?: PlanView['usage'] })
  | ErrorEvent

export const STATES: Readonly<Record<PlanStatus, TaskState>> = {
  queued: 'SUBMITTED',
  running: 'WORKING',
  done: 'COMPLETED',
  failed: 'FAILED',
  cancelled: 'CANCELED',
}

/** Makes a task of A2A from a plan: each step that is done is an artifact. A stream begins with the task as `plan` describes it. */
export class PlanProjection implements Projection<RpcAnswer, PlanTaskEvent> {
  readonly #write: TaskWriter
  readonly #plan: PlanView

  constructor(ref: TaskRef, plan: PlanView) {
    this.#write = new TaskWriter(ref)
    this.#plan = { ...plan, step_statuses: { ...plan.step_statuses } }
  }

  get task(): JsonObject {
    const { steps, step_outputs: outputs = {}, ended_at, started_at, created_at } = this.#plan
    const artifacts = steps.flatMap(({ id }) => (Object.hasOwn(outputs, id) ? [artifactOf(id, outputs[id])] : []))
    const timestamp = ended_at ?? started_at ?? created_at
    return this.#write.task({ status: { ...this.#status, timestamp }, artifacts, metadata: this.#metadata })
  }

  get isOver(): boolean {
    return hasEnded(this.#status)
  }

  begin(): RpcAnswer[] {
    return [{ result: { task: this.task } }]
  }

  /** Skips the events that the first shown task already contains. */
  take({ seq, event }: Numbered<PlanTaskEvent>): RpcAnswer[] {
    switch (event.type) {
      case 'plan_started':
        return this.#begin(event.at)
      case 'step_started':
        return this.#start(event.step_id, seq)
      case 'step_ended':
        return this.#endStep(event, seq)
      case 'plan_ended':
        return this.#end(event)
      case 'error':
        return [failed(event)]
    }
  }

  cut(code: ReaderFailure): RpcAnswer[] {
    return [failed(readerFailure(code))]
  }

  get #status(): Status {
    const { status, error, step_errors: errors = {} } = this.#plan
    const state = STATES[status]
    if (status !== 'failed' && status !== 'cancelled') return { state }
    const lines = [error ?? `the plan is ${status}`, ...Object.entries(errors).map(([id, text]) => `${id}: ${text}`)]
    return { state, message: this.#write.message('end', [{ text: lines.join('\n') }]) }
  }

  get #metadata(): JsonObject {
    const { id, usage, step_statuses } = this.#plan
    return { plan_id: id, usage, step_statuses: { ...step_statuses } }
  }

  #begin(at: string): RpcAnswer[] {
    if (this.#plan.status !== 'queued') return []
    Object.assign(this.#plan, { status: 'running', started_at: at })
    return [this.#write.statusUpdate(this.#status)]
  }

  #start(stepId: string, seq: number): RpcAnswer[] {
    if (this.#plan.step_statuses[stepId] !== 'pending') return []
    this.#plan.step_statuses[stepId] = 'running'
    return [this.#progress(seq, { step_id: stepId, status: 'running' })]
  }

  #endStep({ step_id: id, status, error, output = '' }: StepEnded & { output?: string }, seq: number): RpcAnswer[] {
    const before = this.#plan.step_statuses[id]
    if (before !== 'pending' && before !== 'running') return []
    this.#plan.step_statuses[id] = status
    if (error !== undefined) this.#plan.step_errors = { ...this.#plan.step_errors, [id]: error }
    const update = this.#progress(seq, { step_id: id, status, ...(error !== undefined && { error }) })
    if (status !== 'done') return [update]
    this.#plan.step_outputs = { ...this.#plan.step_outputs, [id]: output }
    return [this.#write.artifactUpdate(artifactOf(id, output), { append: false, lastChunk: true }), update]
  }

  #progress(seq: number, step: { step_id: string; status: string; error?: string }): RpcAnswer {
    const statuses = Object.values(this.#plan.step_statuses)
    const ended = statuses.filter((status) => status !== 'pending' && status !== 'running').length
    const parts: Part[] = [
      { text: `${step.step_id}: ${step.status} (${ended} of ${statuses.length} steps have ended)` },
      { data: step },
    ]
    return this.#write.statusUpdate({ state: 'WORKING', message: this.#write.message(`${seq}`, parts) })
  }

  #end({ status, error, usage, at }: PlanEnded & { usage?: PlanView['usage'] }): RpcAnswer[] {
    Object.assign(this.#plan, { status, ended_at: at, ...(error !== undefined && { error }), ...(usage && { usage }) })
    return [this.#write.statusUpdate(this.#status, this.#metadata)]
  }
}

const artifactOf = (id: string, output = ''): Artifact => ({
  artifactId: `step-${id}`,
  name: id,
  parts: [{ text: output }],
})

const failed = ({ code, error, suggestion }: ErrorEvent): RpcAnswer =>
  rpcFailure(new RpcError('internal', `${code}: ${error}. ${suggestion}`))
