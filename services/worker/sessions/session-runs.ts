import { type ProgressKeeper, RunProgress } from '../../../shared/agent/engine/run-progress.ts'
import {
  type AcceptedMessage,
  type EarlierRun,
  MAX_ENDED,
  type RunsEntry,
} from '../../../shared/agent/sessions/open-runs.ts'
import type { MessageRequest } from '../../../shared/cluster/commands/sessions.ts'
import { isTerminal, type JsonObject, type RunEvent } from '../../../shared/kernel/events.ts'
import type { Run } from '../../../shared/work/runs/run.ts'
import { KeptEvents } from './kept-events.ts'
import { SafePoint } from './safe-point.ts'

/** Each entry of the log reserves this many event numbers. A new entry is written when only `FEW_LEFT` of them remain. */
export const RESERVED = 4_096
const FEW_LEFT = 1_024
/** A run that ends within this time needs no extra entry to record that its client knows it. */
const SOON_MS = 250

/** Stores the changes of a session. */
export type RunsKeeper = {
  note(): void
  /** Resolves with `false` when another worker has the session, or it was deleted. */
  stored(): Promise<boolean>
}

/** The place of the first log entry about a run. Missing until that entry is written. */
type Place = { fromSeq?: number | undefined }

type Open = {
  accepted: AcceptedMessage
  place: Place
  run: Run
  progress: RunProgress
  events: KeptEvents
  safePoint: SafePoint
  /** The log reserves event numbers up to this one; no later event is sent. */
  reserved: number
  /** Whether the log has the message. Until then nobody reads its events. */
  isStored: boolean
  /** Whether its client knows the run. */
  isConfirmed: boolean
}

/** `isStored`: another worker has accepted the message, and may have begun it. */
type AddedRun = { isStored: boolean; earlier?: EarlierRun | undefined; fromSeq?: number | undefined }

/** A log entry's part about the runs. Call `onStored` when the entry is stored. */
export type TakenRuns = { entry: RunsEntry; onStored(): void }

/** The runs of a session that have not ended, in the form in which its log describes them for another worker (D32.7a). */
export class SessionRuns {
  readonly #keeper: RunsKeeper
  readonly #open = new Map<string, Open>()
  #active: Open | undefined
  /** Accepted runs that are not in the log yet. */
  #accepted: Open[] = []
  #confirmed: string[] = []
  #ended: string[] = []
  /** The places of the most recently ended runs, at most `MAX_ENDED`. */
  #endedPlaces: Place[]
  #isDrained = false

  /** `endedFrom`: the places in the log at which the most recently ended runs begin. */
  constructor(keeper: RunsKeeper, endedFrom: readonly number[] = []) {
    this.#keeper = keeper
    this.#endedPlaces = endedFrom.map((fromSeq) => ({ fromSeq }))
  }

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  /** The progress of the current run. */
  get progress(): RunProgress | undefined {
    return this.#active?.progress
  }

  /** The places in the log at which the most recently ended runs begin. */
  get endedFrom(): number[] {
    return this.#endedPlaces.flatMap(({ fromSeq }) => fromSeq ?? [])
  }

  /** The place of the first log entry about an open run. */
  fromSeqOf(runId: string): number | undefined {
    return this.#open.get(runId)?.place.fromSeq
  }

  /** Whether a turn is complete whose last event has not come yet. */
  get isBetweenTurns(): boolean {
    const active = this.#active && this.#open.get(this.#active.run.id)
    return active !== undefined && active.progress.totals.turns !== active.events.turns
  }

  /** Adds the run of a message. */
  add(run: Run, message: MessageRequest, { isStored, earlier, fromSeq }: AddedRun) {
    const accepted = { run_id: run.id, started_at: run.startedAt.toISOString(), message: message as JsonObject }
    const progress = new RunProgress(this.#progressKeeper(), earlier)
    const events = new KeptEvents(earlier && { ...earlier, turns: earlier.state.totals.turns })
    const [place, reserved] = [{ fromSeq }, earlier?.granted ?? 0]
    const safePoint = new SafePoint()
    const open = { accepted, place, run, progress, events, safePoint, reserved, isStored, isConfirmed: false }
    this.#open.set(run.id, open)
    if (!isStored) this.#accepted.push(open)
    // The confirmation is stored with the next entry, or after a short time.
    void run.whenAccepted().then(() => {
      if (run.isAbandoned || !this.confirm(run.id)) return
      setTimeout(() => this.#confirmed.includes(run.id) && this.#keeper.note(), SOON_MS).unref()
    })
    void run.ended.then(() => {
      if (this.end(run.id)) this.#keeper.note()
    })
  }

  /** The point at which the current run can be left to another worker. */
  get safePoint(): SafePoint | undefined {
    return this.#active?.safePoint
  }

  /**
   * Notes in the log that this worker shuts down and leaves the runs to another one. Resolves when that is stored, and with `false` when
   * another worker has them.
   */
  drain(): Promise<boolean> {
    this.#isDrained = true
    return this.#keeper.stored()
  }

  /**
   * Called before the current run makes its next event, which waits for the returned promise, if any. It resolves with
   * `false` when another worker continues the run.
   */
  stay(): Promise<boolean> | undefined {
    const { run, safePoint } = this.#active ?? {}
    const staying = safePoint?.stay()
    if (!run || !staying) return undefined
    return unlessAborted(run.signal, () => staying.then(() => true)).then(() => !run.isAbandoned)
  }

  /** Lets the runs continue here. */
  resume(): void {
    this.#isDrained = false
    this.safePoint?.leave()
  }

  /** Notes that the run's client knows it. Returns whether the log does not contain that yet. */
  confirm(runId: string): boolean {
    const open = this.#open.get(runId)
    if (!open || open.isConfirmed) return false
    open.isConfirmed = true
    this.#confirmed.push(runId)
    return true
  }

  /** Like `confirm`, but only for background runs: other runs are also confirmed by the gateway that follows them. */
  confirmInBackground(runId: string): boolean {
    return this.#open.get(runId)?.run.needsNoReader === true && this.confirm(runId)
  }

  /** Notes that the run begins or continues here. */
  begin(run: Run): void {
    this.#active = this.#open.get(run.id)
  }

  /** Notes that the run has ended, or that its client has cancelled it: no other worker continues it. */
  end(runId: string): boolean {
    const open = this.#open.get(runId)
    if (!open) return false
    this.#open.delete(runId)
    this.#ended.push(runId)
    this.#endedPlaces = [...this.#endedPlaces, open.place].slice(-MAX_ENDED)
    return true
  }

  /** Called before the run's next event is sent. The event waits for the returned promise, if there is one. */
  send(event: RunEvent): Promise<unknown> | undefined {
    const active = this.#active
    if (!active) return undefined
    const { run, events, reserved, isStored } = active
    const seq = run.journal.lastSeq + 1
    events.add(seq, event)
    active.safePoint.note(event, active.progress.stopReason !== undefined)
    if (isTerminal(event)) this.end(run.id)
    else if (isStored && seq > reserved) return unlessAborted(run.signal, () => this.#keeper.stored())
    else if (isStored && seq === reserved - FEW_LEFT) this.#keeper.note()
    return undefined
  }

  /** Takes the state of the runs for the log entry with this number: the changes since the entry before, or with `isBase` everything. */
  take(seq: number, { isBase }: { isBase: boolean }): TakenRuns | undefined {
    const active = this.#active
    const all = new Set([...(active ? [active] : []), ...this.#open.values()])
    const added = isBase ? [...all] : this.#accepted
    for (const { place } of added) place.fromSeq = seq
    const accepted = added.map((open) => open.accepted)
    const [confirmed, ended] = [isBase ? confirmedOf(all) : this.#confirmed, this.#ended]
    const endedFrom = isBase ? Math.min(seq, ...this.endedFrom) : seq
    const steers = [...all].flatMap((open) => steersOf(open, isBase))
    const changes = accepted.length + confirmed.length + ended.length + steers.length
    if (!active && changes === 0 && endedFrom === seq) return undefined
    this.#accepted = []
    this.#confirmed = []
    this.#ended = []
    if (active && !this.#open.has(active.run.id)) this.#active = undefined
    const reserved = active ? active.run.journal.lastSeq + RESERVED : 0
    return {
      entry: {
        ...(accepted.length > 0 && { accepted }),
        ...(confirmed.length > 0 && { confirmed }),
        ...(steers.length > 0 && { steers }),
        ...(active && { active: activeOf(active, { isBase, reserved }) }),
        ...(ended.length > 0 && { ended }),
        ...(endedFrom < seq && { ended_from: endedFrom }),
        ...(this.#isDrained && { drained: true as const }),
      },
      onStored() {
        if (active) active.reserved = reserved
        for (const open of added) open.isStored = true
      },
    }
  }

  #progressKeeper(): ProgressKeeper {
    return {
      note: () => this.#keeper.note(),
      stored: (signal) => unlessAborted(signal, () => this.#keeper.stored()),
    }
  }
}

const confirmedOf = (all: ReadonlySet<Open>): string[] =>
  [...all].flatMap(({ isConfirmed, accepted }) => (isConfirmed ? [accepted.run_id] : []))

function steersOf({ run, progress }: Open, isAll: boolean): NonNullable<RunsEntry['steers']> {
  const steers = run.steering.toStore(isAll, progress.totals.turns)
  return steers.length > 0 ? [{ run_id: run.id, steers }] : []
}

function activeOf({ run, progress, events }: Open, { isBase, reserved }: { isBase: boolean; reserved: number }) {
  const step = progress.takeStep(isBase)
  const { turns } = run.steering
  const state = { ...progress.state, ...(turns.length > 0 && { steered: [...turns] }) }
  return { run_id: run.id, state, ...(step && { step }), ...events.take(isBase), reserved }
}

/** Resolves with `false` as soon as the signal is aborted. */
async function unlessAborted(signal: AbortSignal, work: () => Promise<boolean>): Promise<boolean> {
  if (signal.aborted) return false
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const stop = () => resolve(false)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([promise, work()])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
