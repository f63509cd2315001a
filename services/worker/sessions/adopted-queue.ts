import { AppError } from '../../../shared/kernel/errors.ts'
import { type AgentEvent, errorEvent, type WarningEvent } from '../../../shared/kernel/events.ts'
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

/**
 * Queues the messages that another worker has accepted for the session, under the ids that their clients know. A run that it has begun goes on
 * behind its last complete turn (D32.7a).
 */
export function adoptQueue(session: Session, waiting: readonly WaitingMessage[], deps: AdoptedQueueDeps): void {
  const { tenant } = session
  for (const each of waiting) {
    const { runId, message, earlier } = each
    const run = adoptRun(session, each, deps)
    deps.admission.hold(tenant, runId, run.ended)
    const prepare = () => prepareLate(tenant, message, deps)
    const execute = () => executeLate(run, session, { prepare, earlier })
    session.post({ run, message, execute, isStored: true, earlier })
  }
}

/** Registers a run of the session that another worker has accepted, with the events that it has sent of it. */
export function adoptRun(session: Session, waiting: WaitingMessage, { runs }: Pick<AdoptedQueueDeps, 'runs'>): Run {
  const { tenant, id: sessionId, workspace } = session
  const { runId, startedAt, message, isConfirmed = true, earlier } = waiting
  const { background: needsNoReader = false } = message
  const run = runs.adopt({
    ...{ id: runId, tenant, sessionId, workspace, startedAt: new Date(startedAt), needsNoReader, isHeld: !isConfirmed },
    about: { title: titleOf(message.prompt) },
    ...(earlier && { earlier: { events: earlier.events, from: earlier.eventsFrom, reserved: earlier.reserved } }),
  })
  // A gateway that got no answer cancels the run. Nobody follows one in the background, whose client may have its id.
  if (!isConfirmed && needsNoReader) setTimeout(() => run.accept(), CANCELLED_WITHIN_MS).unref()
  return run
}

const CANCELLED_WITHIN_MS = 5_000

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
  { prepare, earlier }: { prepare: () => Promise<PreparedRun>; earlier: WaitingMessage['earlier'] },
): AsyncGenerator<AgentEvent, void> {
  if (earlier) yield recovered(earlier.state.totals.turns + 1)
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

/** Tells the client that a turn begins anew: what it has shown of this turn and of later ones does not count. */
const recovered = (turn: number): WarningEvent => ({
  type: 'warning',
  code: 'run_recovered',
  message: `the server of this run failed, and another one goes on with turn ${turn}`,
  detail: { turn_number: turn, suggestion: 'Drop what has come of this turn so far: it begins anew.' },
})
