import type { UnstoredFile } from '../../../shared/agent/engine/call-progress.ts'
import { spentBefore } from '../../../shared/agent/engine/run-progress.ts'
import { fieldsOf } from '../../../shared/agent/engine/usage.ts'
import { isOneShotSession } from '../../../shared/agent/sessions/one-shot.ts'
import type { EarlierRun } from '../../../shared/agent/sessions/open-runs.ts'
import type { RunRequest } from '../../../shared/cluster/commands/runs.ts'
import { type Batched, oneByOne } from '../../../shared/kernel/async/batch.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import {
  errorEvent,
  isTerminal,
  type RunEvent,
  type SubAgentEvent,
  type WarningEvent,
} from '../../../shared/kernel/events.ts'
import { listOf } from '../../../shared/kernel/text.ts'
import { type Admission, startOf } from '../../../shared/tenancy/limits/admission.ts'
import type { ModelSource } from '../../../shared/work/runs/models.ts'
import { aboutStart } from '../../../shared/work/runs/records/record.ts'
import type { Run, RunExecutor } from '../../../shared/work/runs/run.ts'
import type { EarlierEvents, RunIdentity } from '../../../shared/work/runs/run-identity.ts'
import type { Runs } from '../../../shared/work/runs/runs.ts'
import type { PrepareOneShot } from '../prepare-one-shot.ts'
import type { PrepareRun } from '../prepare-run.ts'
import { EarlierAsks, type EarlierAsksDeps } from './earlier-asks.ts'
import type { Session } from './session.ts'
import type { WaitingMessage } from './session-state.ts'

export type AdoptedQueueDeps = EarlierAsksDeps & {
  runs: Pick<Runs, 'adopt' | 'refuse'>
  models: Pick<ModelSource, 'load'>
  admission: Pick<Admission, 'hold' | 'waitOn'>
  prepareRun: PrepareRun
  prepareOneShot: PrepareOneShot
  /** Returns the paths of the files whose content here differs from that of the other worker. */
  lostFiles(session: Session, files: readonly UnstoredFile[]): Promise<readonly string[]>
}

/**
 * Queues the messages that another worker has accepted for the session, under the ids that their clients know. A run that the other worker has
 * begun continues after its last complete turn (D32.7a).
 */
export function adoptQueue(session: Session, waiting: readonly WaitingMessage[], deps: AdoptedQueueDeps): Run[] {
  const { tenant } = session
  return waiting.map((each) => {
    const { runId, message, earlier, fromSeq } = each
    const asks = new EarlierAsks({ tenant, scopeId: scopeOf(session, each), runId }, earlier, deps)
    const start = startOf({ tenant, runId }, message)
    const wait = earlier ? undefined : deps.admission.waitOn(start, new Date(each.startedAt))
    const run = adoptRun(session, each, { ...deps, asks, wait })
    deps.admission.hold(start, run, wait)
    void run.ended.then(() => asks.withdrawAll()) // Withdraws requests that the run had not made again when it ended.
    const prepare = () => prepareLate(session, each, deps)
    const compare = async () => {
      const lost = await deps.lostFiles(session, earlier?.state.unstored ?? [])
      session.runs?.progress?.loseFiles(lost)
      return lost
    }
    const dropAsks = () => asks.drop(session.runs?.progress?.dropAgentAsks() ?? [])
    const execute: RunExecutor = (_run, signal) =>
      executeLate({ run, signal, prepare, earlier, compare, asks, dropAsks })
    session.post({ run, message, execute, isStored: true, earlier, fromSeq })
    return run
  })
}

const scopeOf = ({ id }: Session, { runId }: WaitingMessage): string => (isOneShotSession(id) ? runId : id)

type AdoptRunDeps = Pick<AdoptedQueueDeps, 'runs'> & { asks?: EarlierAsks } & Pick<RunIdentity, 'wait'>

/** Registers a run of the session that another worker has accepted, with the events that the other worker has sent. */
export function adoptRun(session: Session, waiting: WaitingMessage, { runs, asks, wait }: AdoptRunDeps): Run {
  const { tenant, id, workspace } = session
  const { runId, message, isConfirmed = true, steers = [], earlier } = waiting
  const startedAt = new Date(waiting.startedAt)
  const { background: needsNoReader = false }: RunRequest = message
  const sessionId = isOneShotSession(id) ? undefined : id
  const run = runs.adopt({
    ...{ id: runId, tenant, sessionId, workspace, startedAt, needsNoReader, isHeld: !isConfirmed },
    ...{ about: aboutStart(message, startedAt), wait },
    ...(earlier && { earlier: eventsOf(earlier, asks) }),
  })
  run.steering.restore({ steers, turns: earlier?.state.steered ?? [] })
  if (earlier?.state.stopReason) run.steering.close()
  // If a client knows the run its gateway follows it, and that confirms it. For a background run the log says whether a client knows it.
  if (!isConfirmed) setTimeout(() => runs.refuse(run), FOLLOWED_WITHIN_MS).unref()
  return run
}

/** Longer than a gateway searches for the run, and longer than its client needs to come back through another gateway. */
const FOLLOWED_WITHIN_MS = 15_000

function eventsOf(run: EarlierRun, asks?: EarlierAsks): EarlierEvents {
  const { events, eventsFrom: from, reserved, ...earlier } = run
  const end = async () => [goesOn(run, []), ...((await asks?.end()) ?? [])]
  return {
    ...{ events, from, reserved },
    used: fieldsOf(spentBefore(earlier)),
    notice: withoutDeltas(run),
    ...(asks?.isEmpty === false && { end }),
  }
}

/** Loads the tenant's models only when the run begins: a failure then ends the run, because an accepted message cannot be refused. */
async function prepareLate(
  session: Session,
  { message, earlier }: WaitingMessage,
  { models, prepareRun, prepareOneShot }: AdoptedQueueDeps,
): Promise<RunExecutor> {
  const { tenant, id } = session
  await models.load(tenant)
  if (isOneShotSession(id)) return prepareOneShot(tenant, message)({ ...session.start(), events: earlier?.events })
  const prepared = prepareRun(tenant, message)
  return (run) => prepared.execute(run, session.start())
}

type LateRun = Pick<WaitingMessage, 'earlier'> & {
  run: Run
  signal: AbortSignal
  prepare(): Promise<RunExecutor>
  /** Returns the paths of the files whose changes by the other worker are missing here. */
  compare(): Promise<readonly string[]>
  asks: EarlierAsks
  /** Withdraws earlier requests of sub-agents that are not made again here. */
  dropAsks(): void
}

async function* executeLate(late: LateRun): AsyncGenerator<Batched<RunEvent>, void> {
  const { run, signal, prepare, earlier, compare, asks, dropAsks } = late
  if (earlier) yield goesOn(earlier, await compare())
  let execute: RunExecutor
  try {
    execute = await prepare()
  } catch (cause) {
    if (!run.isAbandoned) await asks.withdrawAll()
    if (!(cause instanceof AppError)) throw cause
    yield errorEvent('provider_unavailable', cause.message)
    return
  }
  if (asks.isEmpty) return yield* execute(run, signal)
  const shown = new Set<unknown>()
  for await (const event of oneByOne(execute(run, signal))) {
    if (event.type === 'tool_use' || event.type === 'permission_request') shown.add(event.id)
    // A sub-agent has made a different request, or all sub-agents have ended.
    if (event.type === 'turn_end' || (asksInAgent(event) && !asks.has(event['id']))) dropAsks()
    // The run may end before it has made all requests again; those are withdrawn, unless another worker continues the run.
    if (isTerminal(event) && !run.isAbandoned) yield* await asks.resolve(shown)
    yield event
  }
}

const asksInAgent = (event: RunEvent): event is SubAgentEvent =>
  event.type === 'subagent_event' && event.event_type === 'permission_request'

/** Tells the client that a turn is repeated: the events of this turn and of later ones are void. */
function goesOn(earlier: EarlierRun, lost: readonly string[]): WarningEvent {
  const goesOnHere = recovered(
    earlier,
    (turn) => `${reasonOf(earlier)}, and another one goes on with turn ${turn}`,
    'Drop what has come of this turn so far: it begins anew.',
  )
  if (lost.length === 0) return goesOnHere
  const { message, detail } = goesOnHere
  const named = `; changes of these files are missing: ${listOf(lost)}`
  return { ...goesOnHere, message: message + named, detail: { ...detail, lost_files: lost } }
}

/** Tells a client that has not received all complete turns before the repeated one that their rest comes as it is stored, without deltas. */
const withoutDeltas = (earlier: EarlierRun): WarningEvent =>
  recovered(
    earlier,
    () => `${reasonOf(earlier)}: the rest of its complete turns comes without deltas`,
    'Take the whole text of a block in place of its deltas.',
  )

const reasonOf = ({ isDrained }: EarlierRun): string =>
  isDrained ? 'the server of this run was drained' : 'the server of this run failed'

function recovered(
  { state, isDrained }: EarlierRun,
  messageOf: (turn: number) => string,
  suggestion: string,
): WarningEvent {
  const turn_number = state.totals.turns + 1
  const detail = { turn_number, ...(isDrained && { reason: 'drained' }), suggestion }
  return { type: 'warning', code: 'run_recovered', message: messageOf(turn_number), detail }
}
