import type { JsonObject, RunEvent } from '../../kernel/events.ts'
import type { StepEntry, StepState } from '../engine/call-progress.ts'
import type { KnownSteer } from '../engine/messages/steering.ts'
import type { EarlierProgress, RunState } from '../engine/run-progress.ts'

/** An accepted message. */
export type AcceptedMessage = { run_id: string; started_at: string; message: JsonObject }

/** An event with its number. */
export type NumberedEvent = readonly [seq: number, event: RunEvent]

/** The progress of the current run. */
export type ActiveRun = {
  run_id: string
  state: RunState
  step?: StepEntry
  /** The events of its complete turns since the last entry, without deltas. */
  events?: readonly NumberedEvent[]
  /** Events with a lower number are not stored any more. */
  events_from?: number
  /** No event with a higher number was sent to a client. */
  reserved: number
}

/** The changes since the last entry of a session's runs that have not ended (D32.7a). */
export type RunsEntry = {
  accepted?: readonly AcceptedMessage[]
  /** The ids of runs that their clients know. */
  confirmed?: readonly string[]
  /** The texts that people have sent to each run since the last entry. */
  steers?: readonly { run_id: string; steers: readonly KnownSteer[] }[]
  active?: ActiveRun
  /** The ids of runs that have ended. `active` may be one of them, with its last events. */
  ended?: readonly string[]
  /** Set in an entry with the whole history: the place at which the entries about the most recently ended runs begin. */
  ended_from?: number
  /** Their worker shuts down and will leave them to another one. A later entry shows whether it has. */
  drained?: true
}

/** The part of a run that an earlier process has done. */
export type EarlierRun = EarlierProgress & {
  events: readonly NumberedEvent[]
  eventsFrom: number
  reserved: number
  /** The last event number that is reserved for the worker that continues the run. */
  granted?: number
  /** The earlier process has left the run on purpose, and has not failed. */
  isDrained?: boolean
}

/**
 * A run that another process has accepted. `earlier` is missing when the run has not begun. If the run is not confirmed, its client may have
 * received a refusal.
 */
export type StoredRun = {
  runId: string
  /** The place of the first log entry about the run. */
  fromSeq: number
  startedAt: string
  message: JsonObject
  isConfirmed: boolean
  /** The texts that people have sent to it, in order. */
  steers?: readonly KnownSteer[]
  earlier?: EarlierRun
}

/** The runs of a session: the open ones, in the order of their messages, and those that ended last. */
export type StoredRuns = { open: readonly StoredRun[]; ended: readonly EndedRun[] }
export type EndedRun = StoredRun & { earlier: EarlierRun; endedAt: string }

/**
 * A client may read more slowly than runs end, so ended runs are kept: as many as a session can have waiting messages,
 * plus the one that is answered.
 */
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

/** Reserves event numbers for the worker that continues these runs. Returns the fields for its first entry, and the runs with the reservation. */
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

/** The first entry of a step has the model's answer; later ones only have changes of its calls. */
function mergeSteps(before: StepState | undefined, { model, answer, ...changed }: StepEntry): StepState | undefined {
  if (model !== undefined && answer !== undefined) return { ...changed, model, answer }
  if (!before) return undefined
  const { calls, agents } = before
  return { ...before, ...changed, calls: { ...calls, ...changed.calls }, agents: { ...agents, ...changed.agents } }
}
