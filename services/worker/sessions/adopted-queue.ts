import { AppError } from '../../../shared/kernel/errors.ts'
import { type AgentEvent, errorEvent } from '../../../shared/kernel/events.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { Admission } from '../../../shared/tenancy/limits/admission.ts'
import type { ModelSource } from '../../../shared/work/runs/models.ts'
import { titleOf } from '../../../shared/work/runs/records/record.ts'
import type { Run } from '../../../shared/work/runs/run.ts'
import type { Runs } from '../../../shared/work/runs/runs.ts'
import type { PreparedRun, PrepareRun } from '../prepare-run.ts'
import type { Session, WaitingMessage } from './session.ts'

export type AdoptedQueueDeps = {
  runs: Pick<Runs, 'adopt'>
  models: Pick<ModelSource, 'load'>
  admission: Pick<Admission, 'hold'>
  prepareRun: PrepareRun
}

/** Queues the messages that another worker has accepted for the session, under the ids that their clients know. */
export function adoptQueue(session: Session, waiting: readonly WaitingMessage[], deps: AdoptedQueueDeps): void {
  const { tenant, id: sessionId, workspace } = session
  for (const { runId, startedAt, message } of waiting) {
    const { background: needsNoReader = false } = message
    const identity = { id: runId, tenant, sessionId, workspace, startedAt: new Date(startedAt) }
    const run = deps.runs.adopt({ ...identity, needsNoReader, about: { title: titleOf(message.prompt) } })
    deps.admission.hold(tenant, runId, run.ended)
    const prepare = () => prepareLate(tenant, message, deps)
    session.post({ run, message, execute: () => executeLate(run, session, prepare) })
  }
}

/** The tenant's models are loaded when the run begins: the message cannot be refused any more. */
async function prepareLate(
  tenant: TenantId,
  message: WaitingMessage['message'],
  { models, prepareRun }: AdoptedQueueDeps,
): Promise<PreparedRun> {
  await models.load(tenant)
  return prepareRun(tenant, message)
}

async function* executeLate(
  run: Run,
  session: Session,
  prepare: () => Promise<PreparedRun>,
): AsyncGenerator<AgentEvent, void> {
  let prepared: PreparedRun
  try {
    prepared = await prepare()
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause
    yield errorEvent('provider_unavailable', cause.message)
    return
  }
  yield* prepared.execute(run, session.start())
}
