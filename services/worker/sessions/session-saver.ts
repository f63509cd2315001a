import { lifeOf, renewalOf, type SessionStore } from '../../../shared/agent/sessions/store.ts'
import type { Batched } from '../../../shared/kernel/async/batch.ts'
import { withDeadline } from '../../../shared/kernel/async/deadline.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { insteadOf, type RunEvent, sessionKept, type WarningEvent } from '../../../shared/kernel/events.ts'
import type { Log } from '../../../shared/kernel/log.ts'
import { storeUnavailable } from '../../../shared/platform/store/unavailable.ts'
import { WriteLoop } from '../../../shared/work/runs/records/write-loop.ts'
import { KeptStream } from './kept-stream.ts'
import type { Session } from './session.ts'
import type { LogTimes, SessionLog } from './session-log.ts'

export type SessionSaverDeps = {
  store: Pick<SessionStore, 'append' | 'ownerAt' | 'renew'>
  idleMs: number
  /** The least time between two writes, in milliseconds: under load, the turns of many sessions are written together. */
  batchMs: number
  /** How long the end of a run waits until its last turn is stored, in milliseconds. */
  waitMs: number
  /** Called when another worker has written to a session's log, so that this one no longer owns the session. */
  onLost(session: Session): void
  log: Log
  now?: () => number
}

type Kept = Session & { log: SessionLog }

const STALLED_MS = 1_000
const MAX_ENTRIES = 200
/** A write of this many sessions or more makes the next one wait when it was slow. */
const MANY = 4
const MAX_BATCH_MS = 100
/** MongoDB takes up to 48 MB in one command. */
const MAX_BATCH_BYTES = 8 * 1024 * 1024

/**
 * Stores the turns of sessions while their runs continue: at once when the saver is idle, in batches under load. A run ends for its client when
 * its last turn is stored (D32).
 */
export class SessionSaver {
  readonly #deps: SessionSaverDeps
  readonly #times: LogTimes
  readonly #loop: WriteLoop
  readonly #changed = new Set<Kept>()
  #leastMs: number
  /** When the oldest write began that the store has not answered. */
  #unansweredSince = Infinity

  constructor(deps: SessionSaverDeps) {
    this.#deps = deps
    const { idleMs, now = Date.now } = deps
    this.#times = { renewalMs: renewalOf(idleMs), lifeMs: lifeOf(idleMs), now }
    this.#leastMs = deps.batchMs
    this.#loop = new WriteLoop({
      write: () => this.#writeTimed(),
      dueInMs: () => (this.#changed.size > 0 ? 0 : undefined),
      leastMs: () => this.#leastMs,
    })
  }

  /** Throws `unavailable` while a write has had no answer for longer than a client waits: a new request would wait in vain. */
  refuseIfStalled(): void {
    if (performance.now() - this.#unansweredSince > STALLED_MS) throw storeUnavailable('a write has no answer')
  }

  /** Stores the changes in the background. */
  note(session: Session): void {
    if (!isKept(session) || session.log.end !== undefined) return
    session.log.note()
    this.#changed.add(session)
    this.#loop.schedule()
  }

  /** Stores the changes. Resolves when they are stored, however long that takes, and with `false` when another worker has the session. */
  stored(session: Session): Promise<boolean> {
    this.note(session)
    return session.log?.stored() ?? Promise.resolve(true)
  }

  /** Stores the changes. Throws `unavailable` when the store is too slow, and `not_found` when another worker has the session. */
  async save(session: Session, withinMs = this.#deps.waitMs): Promise<void> {
    this.note(session)
    const isStored = await this.#stored(session, withinMs)
    if (!isStored) throw new AppError('not_found', 'another worker has taken the session over; try again')
  }

  /** Passes on the events of a run of the session, shows each to `observe`, and stores its turns. */
  keep(session: Session, events: AsyncIterable<Batched<RunEvent>>, observe: (event: RunEvent) => void): KeptStream {
    const { runs } = session
    return new KeptStream(events, {
      observe,
      send: (event) => runs?.send(event),
      onTurn: () => this.note(session),
      stay: () => runs?.stay(),
      end: (last) => this.#end(session, last),
    })
  }

  /** Resolves when everything is stored, or after a short time if the store does not answer. */
  settled(): Promise<void> {
    return this.#loop.settled()
  }

  async #end(session: Session, last: RunEvent): Promise<RunEvent[]> {
    this.note(session)
    try {
      const isKeptHere = (await this.#stored(session)) || session.log?.end === 'deleted' || last.type === 'error'
      return [isKeptHere ? last : insteadOf(last, sessionKept(MOVED))]
    } catch {
      return [NOT_STORED, last]
    }
  }

  async #stored({ log }: Session, withinMs = this.#deps.waitMs): Promise<boolean> {
    if (!log) return true
    return withDeadline(log.stored(), withinMs, () => storeUnavailable('too slow'))
  }

  /** After a slow write of many sessions the next one waits as long again, at most `MAX_BATCH_MS`, so that a busy store gets fewer commands. */
  async #writeTimed(): Promise<boolean> {
    const begunAt = performance.now()
    const batch = this.#takeBatch()
    this.#unansweredSince = Math.min(this.#unansweredSince, begunAt)
    const isWritten = await this.#write(batch)
    if (isWritten) this.#unansweredSince = Infinity
    const { batchMs } = this.#deps
    const pausedMs = Math.min(2 * (performance.now() - begunAt), MAX_BATCH_MS)
    this.#leastMs = batch.length < MANY ? batchMs : Math.max(batchMs, pausedMs)
    return isWritten
  }

  async #write(batch: readonly Kept[]): Promise<boolean> {
    try {
      for (const session of batch) await this.#renewHead(session)
      await this.#append(batch)
      return true
    } catch (cause) {
      if (isAway(cause)) {
        for (const session of batch) this.#changed.add(session)
        return false
      }
      this.#deps.log.error('the turns of sessions were not stored', { cause, sessions: batch.length })
      for (const { log } of batch) log.onRefused()
      return true
    }
  }

  #takeBatch(): Kept[] {
    const batch: Kept[] = []
    let bytes = 0
    for (const session of this.#changed) {
      if (batch.length === MAX_ENTRIES || bytes > MAX_BATCH_BYTES) break
      if (session.log.end === undefined && session.runs?.isBetweenTurns) continue
      this.#changed.delete(session)
      if (!session.log.isDue) continue
      bytes += session.conversation.bytes
      batch.push(session)
    }
    return batch
  }

  async #renewHead({ tenant, log, remembered }: Kept): Promise<void> {
    const remembers = remembered.entries.length > 0
    if (!log.isHeadDue(remembers, this.#times)) return
    await this.#deps.store.renew(tenant, log.head, remembers)
    log.onHeadRenewed(remembers, this.#times)
  }

  async #append(batch: readonly Kept[]): Promise<void> {
    if (batch.length === 0) return
    const results = await this.#deps.store.append(batch.map((session) => session.log.take(session, this.#times)))
    for (const [i, session] of batch.entries()) {
      const { places = 1, isOwn = false } = results[i] ?? {}
      if (isOwn) session.log.onStored(places)
      else await this.#onTaken(session, places)
      if (session.log.isDue) this.#changed.add(session)
    }
  }

  async #onTaken(session: Kept, places: number): Promise<void> {
    const { tenant, log } = session
    const by = await this.#deps.store.ownerAt(tenant, log.head, log.nextSeq)
    if (log.onTaken(by, places)) return
    log.close('moved')
    this.#deps.onLost(session)
  }
}

const MOVED = 'another worker has taken the session over, and this answer is not part of it; send the message again'

const NOT_STORED: WarningEvent = {
  type: 'warning',
  code: 'session_not_stored',
  message: 'the store does not answer: this turn is in memory only, and is stored as soon as it does',
  detail: { suggestion: 'Nothing needs to be sent again unless the session turns out to lack this turn.' },
}

const isKept = (session: Session): session is Kept => session.log !== undefined

const isAway = (cause: unknown): boolean => cause instanceof AppError && cause.kind === 'unavailable'
