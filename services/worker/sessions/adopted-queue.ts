import type { EarlierRun } from '../../../shared/agent/sessions/open-runs.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { type AgentEvent, errorEvent, type WarningEvent } from '../../../shared/kernel/events.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { Admission } from '../../../shared/tenancy/limits/admission.ts'
import type { ModelSource } from '../../../shared/work/runs/models.ts'
import { titleOf } from '../../../shared/work/runs/records/record.ts'
import type { EarlierEvents, Run } from '../../../shared/work/runs/run.ts'
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
    const { runId, message, earlier, fromSeq } = each
    const run = adoptRun(session, each, deps)
    deps.admission.hold(tenant, runId, run.ended)
    const prepare = () => prepareLate(tenant, message, deps)
    const execute = () => executeLate(run, session, { prepare, earlier })
    session.post({ run, message, execute, isStored: true, earlier, fromSeq })
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
    ...(earlier && { earlier: eventsOf(earlier) }),
  })
  // A gateway that got no answer cancels the run. Nobody follows one in the background, whose client may have its id.
  if (!isConfirmed && needsNoReader) setTimeout(() => run.accept(), CANCELLED_WITHIN_MS).unref()
  return run
}

const CANCELLED_WITHIN_MS = 5_000

const eventsOf = ({ events, eventsFrom: from, reserved, state }: EarlierRun): EarlierEvents => ({
  ...{ events, from, reserved },
  notice: withoutDeltas(state.totals.turns + 1),
})

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
  if (earlier) yield goesOn(earlier.state.totals.turns + 1)
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
const goesOn = (turn: number): WarningEvent =>
  recovered(
    turn,
    `the server of this run failed, and another one goes on with turn ${turn}`,
    'Drop what has come of this turn so far: it begins anew.',
  )

/** Tells a client that had not got the complete turns, of which the last is before `turn`, that the rest of them comes as it is kept. */
const withoutDeltas = (turn: number): WarningEvent =>
  recovered(
    turn,
    'the server of this run failed: the rest of its complete turns comes without deltas',
    'Take the whole text of a block in place of its deltas.',
  )

const recovered = (turn: number, message: string, suggestion: string): WarningEvent => ({
  type: 'warning',
  code: 'run_recovered',
  message,
  detail: { turn_number: turn, suggestion },
})
