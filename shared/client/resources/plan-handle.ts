import type { Schema } from '../api.ts'
import { type EventId, follow } from '../http/follow.ts'
import { path } from '../http/request.ts'
import type { CallOptions, Transport } from '../http/transport.ts'
import { given } from '../http/transport.ts'

export type PlanEvent = Schema<'PlanEventFrame'>

export type PlanProgressStep = { id: string; title?: string; status: Schema<'StepStatus'>; error?: string }

/** A plan's progress. `done` counts the steps that have ended: done, failed and skipped ones. */
export type PlanProgress = {
  done: number
  total: number
  status: Schema<'PlanStatus'>
  steps: readonly PlanProgressStep[]
  /** The plan as it was last read, at the beginning and at the end, with its steps' newest states. */
  plan: Schema<'Plan'>
}

type FollowOptions = Omit<CallOptions, 'timeoutMs'>

/** A submitted plan. */
export type PlanHandle = {
  readonly id: string
  get(options?: CallOptions): Promise<Schema<'Plan'>>
  /** The plan's progress, now and after each change until it ends. */
  progress(options?: FollowOptions): AsyncGenerator<PlanProgress, void, undefined>
  /** The plan's events from the first one on. */
  events(options?: FollowOptions): AsyncGenerator<PlanEvent, void, undefined>
  /** The plan once it has ended; `status` says whether its steps succeeded. */
  result(options?: FollowOptions): Promise<Schema<'Plan'>>
  cancel(options?: CallOptions): Promise<void>
  /** Submits the unfinished steps of a plan that has ended. */
  retry(options?: CallOptions): Promise<PlanHandle>
}

export function createPlan(transport: Transport, id: string): PlanHandle {
  const own = path`/plans/${id}`
  const get: PlanHandle['get'] = (options) => transport.json('GET', own, { ...options, has: 'steps' })
  const events: PlanHandle['events'] = (options = {}) => {
    const open = (lastEventId?: EventId) => transport.openStream('GET', `${own}/events`, { lastEventId, ...options })
    return follow({ open, signal: options.signal }) as AsyncGenerator<PlanEvent>
  }

  async function* progress(options?: FollowOptions): AsyncGenerator<PlanProgress, void, undefined> {
    let plan = await get(options)
    yield progressOf(plan)
    if (!isOpen(plan.status)) return
    for await (const event of events(options)) {
      const changed = planAfter(plan, event)
      if (changed) yield progressOf((plan = changed))
    }
    yield progressOf(await get(options))
  }

  return {
    id,
    get,
    events,
    progress,
    async result(options) {
      let last: PlanProgress | undefined
      for await (last of progress(options));
      return (last as PlanProgress).plan // There is always at least one progress.
    },
    cancel: (options) => transport.json('POST', `${own}/cancel`, options),
    async retry(options) {
      return createPlan(
        transport,
        (await transport.json<Schema<'Plan'>>('POST', `${own}/retry`, { ...options, has: 'id' })).id,
      )
    },
  }
}

/** The plan, if the event changes one of its steps. The events are replayed from the first one, so some show what the plan already contains. */
function planAfter(plan: Schema<'Plan'>, { data }: PlanEvent): Schema<'Plan'> | undefined {
  if (!('step_id' in data)) return undefined
  const { step_id: id, status, error }: StepChange = { status: 'running', ...data }
  const known = plan.step_statuses[id]
  if (!isOpen(known) || known === status) return undefined
  return {
    ...plan,
    ...(status === 'running' && { status }),
    step_statuses: { ...plan.step_statuses, [id]: status },
    ...(error && { step_errors: { ...plan.step_errors, [id]: error } }),
  }
}

type StepChange = Pick<Schema<'StepEndedData'>, 'step_id' | 'error'> & { status: Schema<'StepStatus'> }

const isOpen = (status = ''): boolean => ['queued', 'pending', 'running'].includes(status)

function progressOf(plan: Schema<'Plan'>): PlanProgress {
  const { status, step_statuses, step_errors } = plan
  const steps = plan.steps.map(({ id, title }) =>
    given({ id, title, status: step_statuses[id] as Schema<'StepStatus'>, error: step_errors?.[id] }),
  )
  const done = steps.filter((step) => !isOpen(step.status)).length
  return { done, total: steps.length, status, steps, plan }
}
