import type { JsonObject, RunEvent } from '../../kernel/events.ts'
import type { StepEntry, StepState } from '../engine/call-progress.ts'
import type { KnownSteer } from '../engine/messages/steering.ts'
import type { EarlierProgress, RunState } from '../engine/run-progress.ts'

/** A message that was accepted. */
export type AcceptedMessage = { run_id: string; started_at: string; message: JsonObject }

/** An event with its number. */
export type NumberedEvent = readonly [seq: number, event: RunEvent]

/** How far the run is that was begun. */
export type ActiveRun = {
  run_id: string
  state: RunState
  step?: StepEntry
  /** The events of its complete turns, without deltas, since the entry before. */
  events?: readonly NumberedEvent[]
  /** Earlier events than this number are not stored any more. */
  events_from?: number
  /** No event with a higher number has been sent to anybody. */
  reserved: number
}

/** The runs of a session's messages that have not ended, as far as they have changed since the entry before (D32.7a). */
export type RunsEntry = {
  accepted?: readonly AcceptedMessage[]
  /** The ids of those whose clients have them. */
  confirmed?: readonly string[]
  /** What people have told each of them since the entry before. */
  steers?: readonly { run_id: string; steers: readonly KnownSteer[] }[]
  active?: ActiveRun
  /** The ids of those that have ended. `active` may be one of them, with its last events. */
  ended?: readonly string[]
  /** The place from which on the entries tell of those that had ended last before this entry, which has all others. */
  ended_from?: number
  /** Their worker shuts down, and leaves them to another one. An entry behind this one says whether it has left them. */
  drained?: true
}

/** What an earlier process has done of a run. */
export type EarlierRun = EarlierProgress & {
  events: readonly NumberedEvent[]
  eventsFrom: number
  reserved: number
  /** The last number that is reserved for the worker that goes on with it. */
  granted?: number
  /** The earlier process has left it, and has not failed. */
  isDrained?: boolean
}

/**
 * A run that another process has accepted. `earlier` is missing when it has not begun. Unless it is confirmed, its client may have been told that it
 * was not accepted.
 */
export type StoredRun = {
  runId: string
  /** The place of the log from which on its entries tell all of the run. */
  fromSeq: number
  startedAt: string
  message: JsonObject
  isConfirmed: boolean
  /** What people have told it, in order. */
  steers?: readonly KnownSteer[]
  earlier?: EarlierRun
}

/** The runs of a session: those that go on, in the order of their messages, and those that ended last. */
export type StoredRuns = { open: readonly StoredRun[]; ended: readonly EndedRun[] }
export type EndedRun = StoredRun & { earlier: EarlierRun; endedAt: string }

/** A client may read more slowly than runs end. So many messages of it were waiting at most, and one was answered. */
export const MAX_ENDED = 9

type PlacedRuns = { seq: number; at: string; isBase?: true; runs?: RunsEntry }

/** Reads the runs from the entries of a log, oldest first. */
export function storedRuns(entries: readonly PlacedRuns[]): StoredRuns {
  const open = new Map<string, StoredRun>()
  const last: EndedRun[] = []
  for (const { seq, at, isBase, runs } of entries) {
    if (!runs) continue
    for (const { run_id: runId, started_at: startedAt, message } of runs.accepted ?? []) {
      const known = open.get(runId)
      if (!known) open.set(runId, { runId, fromSeq: seq, startedAt, message, isConfirmed: false })
      else if (isBase) open.set(runId, { ...known, fromSeq: seq })
    }
    for (const runId of runs.confirmed ?? []) {
      const run = open.get(runId)
      if (run) open.set(runId, { ...run, isConfirmed: true })
    }
    for (const { run_id: runId, steers } of runs.steers ?? []) {
      const run = open.get(runId)
      if (run) open.set(runId, { ...run, steers: isBase ? steers : [...(run.steers ?? []), ...steers] })
    }
    const active = runs.active && open.get(runs.active.run_id)
    const isDrained = runs.drained === true
    if (active && runs.active)
      open.set(active.runId, { ...active, earlier: { ...goOn(active.earlier, runs.active), isDrained } })
    for (const runId of runs.ended ?? []) {
      const run = open.get(runId)
      if (run?.earlier) last.push({ ...run, earlier: run.earlier, endedAt: at })
      open.delete(runId)
    }
  }
  return { open: [...open.values()], ended: last.slice(-MAX_ENDED) }
}

/** Reserves numbers for the worker that goes on with these runs: what its first entry says, and the runs with it. */
export function grantNumbers(runs: StoredRuns, count: number): { runs: StoredRuns; entry?: RunsEntry } {
  const begun = runs.open.find(({ earlier }) => earlier)
  if (!begun?.earlier) return { runs }
  const { earlier } = begun
  const granted = earlier.reserved + count
  const open = runs.open.map((run) => (run === begun ? { ...run, earlier: { ...earlier, granted } } : run))
  return {
    runs: { ...runs, open },
    entry: { active: { run_id: begun.runId, state: earlier.state, reserved: granted } },
  }
}

function goOn(earlier: EarlierRun | undefined, active: ActiveRun): EarlierRun {
  const { state, step, events = [], events_from: eventsFrom, reserved } = active
  const kept = eventsFrom === undefined ? (earlier?.events ?? []) : []
  const isSameTurn = earlier?.state.totals.turns === state.totals.turns
  const stepBefore = isSameTurn ? earlier.step : undefined
  return {
    state,
    step: step ? mergeSteps(stepBefore, step) : stepBefore,
    events: [...kept, ...events],
    eventsFrom: eventsFrom ?? earlier?.eventsFrom ?? 1,
    reserved,
  }
}

/** A step begins with its answer; what follows has changes of its calls. */
function mergeSteps(before: StepState | undefined, { model, answer, ...changed }: StepEntry): StepState | undefined {
  if (model !== undefined && answer !== undefined) return { ...changed, model, answer }
  if (!before) return undefined
  const { calls, agents } = before
  return { ...before, ...changed, calls: { ...calls, ...changed.calls }, agents: { ...agents, ...changed.agents } }
}
