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
  /** Resolves with `false` when the session is another worker's now, or was deleted. */
  stored(): Promise<boolean>
}

/** The place of the log from which on its entries tell all of a run. It is missing until the first of them is written. */
type Place = { fromSeq?: number | undefined }

type Open = {
  accepted: AcceptedMessage
  place: Place
  run: Run
  progress: RunProgress
  events: KeptEvents
  safePoint: SafePoint
  /** No event above this number is sent, as far as the log says. */
  reserved: number
  /** Whether the log has the message. Until then nobody reads its events. */
  isStored: boolean
  /** Whether its client has it. */
  isConfirmed: boolean
}

/** `isStored`: another worker has accepted the message, and perhaps begun it. */
type AddedRun = { isStored: boolean; earlier?: EarlierRun | undefined; fromSeq?: number | undefined }

/** What an entry of the log says of the runs. `onStored` is to be called when it is stored. */
export type TakenRuns = { entry: RunsEntry; onStored(): void }

/** The runs of a session that have not ended, as its log tells another worker of them (D32.7a). */
export class SessionRuns {
  readonly #keeper: RunsKeeper
  readonly #open = new Map<string, Open>()
  #active: Open | undefined
  /** What the log lacks. */
  #accepted: Open[] = []
  #confirmed: string[] = []
  #ended: string[] = []
  /** The places of the last runs that have ended, at most `MAX_ENDED`. */
  #endedPlaces: Place[]
  #isDrained = false

  /** `endedFrom`: the places from which on the log has the runs that have ended last. */
  constructor(keeper: RunsKeeper, endedFrom: readonly number[] = []) {
    this.#keeper = keeper
    this.#endedPlaces = endedFrom.map((fromSeq) => ({ fromSeq }))
  }

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  /** The progress of the run that was begun last. */
  get progress(): RunProgress | undefined {
    return this.#active?.progress
  }

  /** The places from which on the log has the runs that have ended last. */
  get endedFrom(): number[] {
    return this.#endedPlaces.flatMap(({ fromSeq }) => fromSeq ?? [])
  }

  /** The place from which on the log tells all of an open run. */
  fromSeqOf(runId: string): number | undefined {
    return this.#open.get(runId)?.place.fromSeq
  }

  /** Whether a turn is complete whose last event has not come yet. */
  get isBetweenTurns(): boolean {
    const active = this.#active && this.#open.get(this.#active.run.id)
    return active !== undefined && active.progress.totals.turns !== active.events.turns
  }

  /** The session has a message. */
  add(run: Run, message: MessageRequest, { isStored, earlier, fromSeq }: AddedRun) {
    const accepted = { run_id: run.id, started_at: run.startedAt.toISOString(), message: message as JsonObject }
    const progress = new RunProgress(this.#progressKeeper(), earlier)
    const events = new KeptEvents(earlier && { ...earlier, turns: earlier.state.totals.turns })
    const [place, reserved] = [{ fromSeq }, earlier?.granted ?? 0]
    const safePoint = new SafePoint()
    const open = { accepted, place, run, progress, events, safePoint, reserved, isStored, isConfirmed: false }
    this.#open.set(run.id, open)
    if (!isStored) this.#accepted.push(open)
    // It is stored with what comes next, or soon.
    void run.whenAccepted().then(() => {
      if (run.isAbandoned || !this.confirm(run.id)) return
      setTimeout(() => this.#confirmed.includes(run.id) && this.#keeper.note(), SOON_MS).unref()
    })
    void run.ended.then(() => {
      if (this.end(run.id)) this.#keeper.note()
    })
  }

  /** Where the run that was begun can be left to another worker. */
  get safePoint(): SafePoint | undefined {
    return this.#active?.safePoint
  }

  /**
   * This worker shuts down: the log says that it leaves the runs to another one. Resolves when that is stored, and with `false` when another
   * worker has them.
   */
  drain(): Promise<boolean> {
    this.#isDrained = true
    return this.#keeper.stored()
  }

  /** Before the begun run's next event is made: a promise resolves when it may be, and with `false` when another worker makes it. */
  stay(): Promise<boolean> | undefined {
    const { run, safePoint } = this.#active ?? {}
    const staying = safePoint?.stay()
    if (!run || !staying) return undefined
    return unlessAborted(run.signal, () => staying.then(() => true)).then(() => !run.isAbandoned)
  }

  /** The runs go on here. */
  resume(): void {
    this.#isDrained = false
    this.safePoint?.leave()
  }

  /** Its client has the run. Returns whether the log does not say that yet. */
  confirm(runId: string): boolean {
    const open = this.#open.get(runId)
    if (!open || open.isConfirmed) return false
    open.isConfirmed = true
    this.#confirmed.push(runId)
    return true
  }

  /** As `confirm`, of a run in the background alone: of others the gateway that follows them says it, too. */
  confirmInBackground(runId: string): boolean {
    return this.#open.get(runId)?.run.needsNoReader === true && this.confirm(runId)
  }

  /** The run begins here, or goes on. */
  begin(run: Run): void {
    this.#active = this.#open.get(run.id)
  }

  /** The client has ended the run, or it has ended: no other worker goes on with it. */
  end(runId: string): boolean {
    const open = this.#open.get(runId)
    if (!open) return false
    this.#open.delete(runId)
    this.#ended.push(runId)
    this.#endedPlaces = [...this.#endedPlaces, open.place].slice(-MAX_ENDED)
    return true
  }

  /** The run's next event is about to be sent. A promise resolves when it may be. */
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
