import type { Response } from 'express'
import type { FrameStream, Frames } from '../../../../shared/cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { PullIterator } from '../../../../shared/kernel/async/pull-iterator.ts'
import { hasKind } from '../../../../shared/kernel/errors.ts'
import type { PlanEvent } from '../../../../shared/kernel/events.ts'
import { planRunId } from '../../../../shared/kernel/ids.ts'
import type { PlanView } from '../../../../shared/work/plans/view.ts'
import { assertAdmitted } from '../../middleware/admission.ts'
import { subjectOf, tenantOf } from '../../middleware/auth.ts'
import { required } from '../../routes/requires.ts'
import { FrameDecoder, type Numbered } from '../../streams/run-events.ts'
import type { DialectDeps } from '../dialect.ts'
import type { Fields } from '../shared/fields.ts'
import { historyOfPlan } from './history.ts'
import { type IncomingMessage, keyOf } from './message.ts'
import { type Call, ended, type OpenedTask, opened, type SeenTask } from './opened-task.ts'
import { PlanProjection, type PlanTaskEvent } from './plan-projection.ts'
import { RpcError } from './rpc.ts'
import { planOf, type TaskRef } from './task-id.ts'

/** Submits the plan of a message, as `POST /plans/submit` does. */
export async function submitPlan(
  deps: DialectDeps,
  call: Call,
  message: IncomingMessage & { plan: Fields },
): Promise<OpenedTask> {
  assertAdmitted(call.res)
  const { calls } = required('plans', deps.plans)
  const request = await deps.checkValue('PlanRequest', message.plan.value, message.plan.at)
  const submission = { subject: subjectOf(call.res), idempotencyKey: keyOf(call.req, message) }
  const { plan } = await calls.submit(tenantOf(call.res), request, submission)
  const runId = planRunId(plan.id)
  return follow(deps, call.res, { ref: { runId, contextId: message.contextId ?? runId, isPlan: true }, plan })
}

export async function readPlan(deps: DialectDeps, res: Response, ref: TaskRef): Promise<SeenTask> {
  const plan = await required('plans', deps.plans).calls.get(tenantOf(res), planOf(ref))
  const { task, isOver } = new PlanProjection(ref, plan)
  return {
    ...{ ref, task, isOver, asked: [] },
    history: async () => historyOfPlan(ref, plan),
    follow: () => follow(deps, res, { ref, plan }),
  }
}

/** Cancels the plan. If it has started it ends within 2 s; the returned task shows that end. */
export async function cancelPlan(
  deps: DialectDeps,
  res: Response,
  { ref, follow: open }: SeenTask,
): Promise<OpenedTask> {
  const { calls } = required('plans', deps.plans)
  await calls.cancel(tenantOf(res), planOf(ref)).catch((cause: unknown) => {
    if (!hasKind(cause, 'conflict')) throw cause
    throw new RpcError('task_not_cancelable', 'the task has ended')
  })
  return open()
}

async function follow(
  { plans }: DialectDeps,
  res: Response,
  { ref, plan }: { ref: TaskRef; plan: PlanView },
): Promise<OpenedTask> {
  const { calls } = required('plans', plans)
  const [tenant, planId] = [tenantOf(res), planOf(ref)]
  const frames = await calls.frames(tenant, planId, 0)
  if (!frames) throw ended()
  const { step_outputs: known = {} } = plan
  const read = (stepIds: readonly string[]) =>
    calls.get(tenant, planId, { outputsOf: stepIds.filter((id) => !Object.hasOwn(known, id)) })
  return opened({
    ref,
    source: { frames: new RecordedFrames(frames, read) },
    projection: new PlanProjection(ref, plan),
  })
}

/** The events of a plan, with the facts that its record adds to them. */
class RecordedFrames extends PullIterator<Frames> {
  readonly #frames: AsyncIterator<Frames>
  readonly #read: (stepIds: readonly string[]) => Promise<PlanView>
  readonly #decoder = new FrameDecoder<PlanEvent>()

  constructor(frames: FrameStream, read: (stepIds: readonly string[]) => Promise<PlanView>) {
    super()
    this.#frames = frames[Symbol.asyncIterator]()
    this.#read = read
  }

  protected override async pull(): Promise<Frames | undefined> {
    const { done, value } = await this.#frames.next()
    if (done === true) return undefined
    const events = this.#decoder.take(value)
    const stepIds = events.flatMap(({ event }) =>
      event.type === 'step_ended' && event.status === 'done' ? [event.step_id] : [],
    )
    const isRecorded = stepIds.length > 0 || events.some(({ event }) => event.type === 'plan_ended')
    const plan = isRecorded ? await this.#read(stepIds) : undefined
    return { ...value, text: events.map((numbered) => withRecord(numbered, plan)).join('') }
  }

  protected override async stop(): Promise<void> {
    await this.#frames.return?.()
  }
}

function withRecord({ seq, event }: Numbered<PlanEvent>, plan: PlanView | undefined): string {
  const recorded: PlanTaskEvent =
    event.type === 'step_ended' && event.status === 'done'
      ? { ...event, output: plan?.step_outputs?.[event.step_id] ?? '' }
      : { ...event, ...(event.type === 'plan_ended' && plan && { usage: plan.usage }) }
  return renderFrame(seq, recorded)
}
