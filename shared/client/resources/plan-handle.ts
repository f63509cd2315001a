import type { Schema } from '../api.ts'
import { follow } from '../http/follow.ts'
import { given } from '../http/given.ts'
import { path } from '../http/path.ts'
import type { CallOptions, Transport } from '../http/transport.ts'

export type PlanEvent = Schema<'PlanEventFrame'>

export type PlanProgressStep = { id: string; title?: string; status: Schema<'StepStatus'>; error?: string }

/** How far a plan is. `done` counts the steps that need nothing more: done, failed and skipped ones. */
export type PlanProgress = {
  done: number
  total: number
  status: Schema<'PlanStatus'>
  steps: readonly PlanProgressStep[]
  /** The plan as it was read last: when the progress began, and at the end, with outputs and costs. */
  plan: Schema<'Plan'>
}

/** A submitted plan. */
export class PlanHandle {
  readonly id: string
  readonly #transport: Transport
  readonly #path: string

  constructor(transport: Transport, id: string) {
    this.id = id
    this.#transport = transport
    this.#path = path`/plans/${id}`
  }

  get(options?: CallOptions): Promise<Schema<'Plan'>> {
    return this.#transport.json('GET', this.#path, options)
  }

  /** How far the plan is, now and after each change until it ends. */
  async *progress(options: Omit<CallOptions, 'timeoutMs'> = {}): AsyncGenerator<PlanProgress, void, undefined> {
    const plan = await this.get(options)
    const steps = stepsOf(plan)
    yield progressOf(plan, steps)
    if (!isOpen(plan)) return
    for await (const event of this.events(options)) {
      if (event.event === 'plan_started') plan.status = 'running'
      if (changeStep(steps, event)) yield progressOf(plan, steps)
    }
    const ended = await this.get(options)
    yield progressOf(ended, stepsOf(ended))
  }

  /** The plan's events from the first one on. */
  async *events(options: Omit<CallOptions, 'timeoutMs'> = {}): AsyncGenerator<PlanEvent, void, undefined> {
    const events = follow({
      open: (lastEventId) => this.#transport.openStream(`${this.#path}/events`, { lastEventId, ...options }),
      after: undefined,
      signal: options.signal,
      resumeMs: this.#transport.limits.resumeMs,
    })
    for await (const { id, ...event } of events) yield { id: Number(id), ...event } as PlanEvent
  }

  /** The plan once it has ended, whether its steps were done or not: `status` says so. */
  async result(options: Omit<CallOptions, 'timeoutMs'> = {}): Promise<Schema<'Plan'>> {
    let last: PlanProgress | undefined
    for await (last of this.progress(options));
    return last?.plan ?? this.get(options)
  }

  async cancel(options?: CallOptions): Promise<void> {
    await this.#transport.json('POST', `${this.#path}/cancel`, options)
  }

  /** Submits what is left of a plan that has ended. */
  async retry(options?: CallOptions): Promise<PlanHandle> {
    const { id } = await this.#transport.json<Schema<'Plan'>>('POST', `${this.#path}/retry`, options)
    return new PlanHandle(this.#transport, id)
  }
}

type Steps = Map<string, PlanProgressStep>

const stepsOf = ({ steps, step_statuses, step_errors }: Schema<'Plan'>): Steps =>
  new Map(
    steps.map(({ id, title }) => [
      id,
      given({ id, title, status: step_statuses[id] ?? 'pending', error: step_errors?.[id] }),
    ]),
  )

/** Whether the event changes a step. The events are replayed from the first one, so some tell what the plan has shown already. */
function changeStep(steps: Steps, { event, data }: PlanEvent): boolean {
  if (event !== 'step_started' && event !== 'step_ended') return false
  const { status, error }: StepEnd = event === 'step_ended' ? data : { status: 'running' }
  const step = steps.get(data.step_id)
  if (!step || !isOpen(step) || step.status === status) return false
  steps.set(step.id, given({ ...step, status, error }))
  return true
}

type StepEnd = Pick<PlanProgressStep, 'status' | 'error'>

const isOpen = ({ status }: { status: string }): boolean => ['queued', 'pending', 'running'].includes(status)

function progressOf(plan: Schema<'Plan'>, steps: Steps): PlanProgress {
  const all = [...steps.values()]
  const done = all.filter((step) => !isOpen(step)).length
  return { done, total: all.length, status: plan.status, steps: all, plan }
}
