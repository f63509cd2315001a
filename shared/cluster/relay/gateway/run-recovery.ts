import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, hasKind } from '../../../kernel/errors.ts'
import { epochOfRun } from '../../../kernel/ids.ts'
import type { Log } from '../../../kernel/log.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { MovedRuns, SessionKey } from '../../owners/owners.ts'

type Looked = { tenant: TenantId; runId: string; from: number; searched: number | undefined }
type BusySession = { id: string; tenant: TenantId; session_id: string }

/** The sessions that have runs, by their worker's epoch, so that those of a dead worker are found (D32.8). */
export interface BusySource {
  /** The next worker, in the order of names, that has left sessions. */
  nextOwner(after: string | undefined): Promise<string | undefined>
  of(owner: string, limit: number): Promise<BusySession[]>
  delete(ids: readonly string[]): Promise<void>
}

export type RunRecoveryDeps = {
  busy: BusySource
  movedRuns: Pick<MovedRuns, 'find'>
  isMember(epoch: number): Promise<boolean>
  /** Whether the worker of this epoch leaves its runs to others. */
  isDraining(epoch: number): boolean
  /** Asks other workers to open sessions of the dead worker, many with each call. Returns those that are open. */
  openTogether<S extends SessionKey>(lost: number, sessions: readonly S[]): Promise<S[]>
  /** Asks a worker to open the session and continue its runs. Returns its epoch. Throws `not_found` when that worker does not have it. */
  open(session: SessionKey): Promise<number>
  isStored(session: SessionKey): Promise<boolean>
  /** `false` while the workers write the places of their runs again after Redis has lost its keys: a run that is not found may still exist. */
  isRebuilt(): Promise<boolean>
  /** How many gateways begin before this one, so that they do not all do the same work. */
  rank(): number
  /** How long sessions that cannot be opened are tried again, before they are left to the next sweep. */
  patienceMs?: number
  log: Log
}

const AT_A_TIME = 16
const PAGE = 200
/** How much later a gateway begins than the one before it, which usually has done the work by then. */
const STEP_MS = 400
const MAX_STEPS = 3
/** The pause before failed sessions are tried again. */
const RETRY_MS = 250
const PATIENCE_MS = 20_000
/** How often, and for how long, the place of a run is looked up if no notice of its worker comes. */
const LOOK_MS = 400
const WAIT_MS = 10_000
const SWEEP_MS = 30_000

/**
 * Lets other workers open the sessions of dead workers and continue their runs. Every gateway does that for each worker whose loss it notices,
 * and from time to time for workers whose loss no gateway has noticed. A session that has an owner again is left as it is.
 */
export class RunRecovery {
  readonly #deps: RunRecoveryDeps
  /** The running recoveries, by the epoch of the dead worker. */
  readonly #recovering = new Map<number, Promise<boolean>>()
  /** The callers that wait for a run to continue elsewhere. */
  readonly #finding = new Map<string, Set<(epoch: number) => void>>()
  readonly #stopped = new AbortController()
  #timer: NodeJS.Timeout | undefined

  constructor(deps: RunRecoveryDeps) {
    this.#deps = deps
  }

  start(): void {
    void this.#sweep()
    this.#timer = setInterval(() => void this.#sweep(), SWEEP_MS).unref()
  }

  stop(): void {
    this.#stopped.abort()
    clearInterval(this.#timer)
  }

  /** Aborted when this gateway leaves. */
  get stopped(): AbortSignal {
    return this.#stopped.signal
  }

  /**
   * Recovers the sessions of a worker that is no longer a member. Resolves when other workers have its sessions with
   * runs, and with `false` when some are left to the next try.
   */
  recover(epoch: number): Promise<boolean> {
    const known = this.#recovering.get(epoch)
    if (known) return known
    const recovering = this.#recover(epoch).finally(() => this.#recovering.delete(epoch))
    this.#recovering.set(epoch, recovering)
    return recovering
  }

  /**
   * Finds the worker of a run that is no longer at the worker of epoch `from`. Waits while the sessions of a dead worker are being opened;
   * `undefined` when no worker continues the run. Throws `unavailable` when that is not known within the time.
   */
  async find(tenant: TenantId, runId: string, from: number, withinMs = WAIT_MS): Promise<number | undefined> {
    const until = performance.now() + withinMs
    let searched: number | undefined
    while (performance.now() < until && !this.#stopped.signal.aborted) {
      using notice = this.#noticeOf(runId) // Registered before the look-up: a later move is reported by a notice.
      const seen = await this.#look({ tenant, runId, from, searched }).catch(() => undefined)
      if (seen && 'epoch' in seen) return seen.epoch
      const recovered = seen && searched === undefined ? this.#recovered(seen.last) : this.#pause(LOOK_MS)
      const told = await Promise.race([recovered, notice.comes])
      if (typeof told === 'number' && told !== from) return told
      searched = told === true ? seen?.last : undefined
    }
    throw new AppError('unavailable', 'the worker of this run was lost; another one is about to go on with it', {
      retryAfterSecs: 2,
    })
  }

  /** Called when these runs continue at the worker of this epoch, which has recorded that. */
  onMoved(runIds: readonly string[], epoch: number): void {
    for (const runId of runIds) for (const tell of this.#finding.get(runId) ?? []) tell(epoch)
  }

  /** Finds the run, or the worker that had it last. `searched`: a worker whose sessions have all been opened. */
  async #look({ tenant, runId, from, searched }: Looked): Promise<{ epoch: number | undefined } | { last: number }> {
    const { movedRuns, isMember, isDraining, isRebuilt } = this.#deps
    const isKnown = searched !== undefined && (await isRebuilt())
    const moved = await movedRuns.find(tenant, runId)
    if (moved !== undefined && moved !== from && (await isMember(moved))) return { epoch: moved }
    const last = moved ?? epochOfRun(runId)
    const isNowhere = (isKnown && last === searched) || (!isDraining(last) && (await isMember(last)))
    return isNowhere ? { epoch: undefined } : { last }
  }

  /** Resolves with `true` as soon as no session of that worker is left, and with `false` when it is time to look again. */
  async #recovered(last: number): Promise<boolean> {
    const recovered = async () => (await this.recover(last)) || this.#pause(LOOK_MS)
    return Promise.race([recovered(), this.#pause(LOOK_MS)])
  }

  #noticeOf(runId: string): { comes: Promise<number> } & Disposable {
    const { promise: comes, resolve } = Promise.withResolvers<number>()
    const all = this.#finding.get(runId) ?? new Set()
    this.#finding.set(runId, all.add(resolve))
    return {
      comes,
      [Symbol.dispose]: () => {
        all.delete(resolve)
        if (all.size === 0 && this.#finding.get(runId) === all) this.#finding.delete(runId)
      },
    }
  }

  async #sweep(): Promise<void> {
    const { busy, isMember, log } = this.#deps
    try {
      for (let owner = await busy.nextOwner(undefined); owner !== undefined; owner = await busy.nextOwner(owner))
        if (!(await isMember(Number(owner)))) void this.recover(Number(owner))
    } catch (cause) {
      log.debug('the runs of dead workers cannot be looked for now', { cause })
    }
  }

  async #recover(epoch: number): Promise<boolean> {
    const { rank, patienceMs = PATIENCE_MS, log } = this.#deps
    const until = performance.now() + patienceMs
    await this.#pause(STEP_MS * Math.min(rank(), MAX_STEPS))
    while (!this.#stopped.signal.aborted) {
      if (await this.#openAll(epoch).catch(() => false)) return true
      if (performance.now() > until) {
        log.warn('sessions of a dead worker could not be opened', { epoch })
        return false
      }
      await this.#pause(RETRY_MS)
    }
    return false
  }

  /** Resolves with `false` after the time, or when this gateway leaves. */
  #pause(ms: number): Promise<false> {
    return sleep(ms, false as const, { signal: this.#stopped.signal }).catch(() => false as const)
  }

  /** Opens all sessions of the worker. Returns whether none is left. */
  async #openAll(epoch: number): Promise<boolean> {
    const { busy } = this.#deps
    const refused = new Set<string>()
    for (;;) {
      const left = await busy.of(String(epoch), refused.size + PAGE)
      const sessions = left.filter(({ id }) => !refused.has(id))
      const opened = await this.#openTogether(sessions, epoch)
      const next = shuffled(sessions.filter(({ id }) => !opened.includes(id)))[Symbol.iterator]()
      const work = async () => {
        for (const session of next)
          if (await this.#open(session, epoch)) opened.push(session.id)
          else refused.add(session.id)
      }
      await Promise.all(Array.from({ length: AT_A_TIME }, work))
      if (opened.length > 0) await busy.delete(opened)
      if (sessions.length < PAGE) return refused.size === 0
    }
  }

  /** Opens several sessions with each call. Returns the marks of the open ones. */
  async #openTogether(sessions: readonly BusySession[], epoch: number): Promise<string[]> {
    const keys = sessions.map(({ id: mark, tenant, session_id: id }) => ({ mark, tenant, id }))
    const opened = await this.#deps.openTogether(epoch, keys)
    return opened.map(({ mark }) => mark)
  }

  /**
   * Returns whether another worker has the session, or it is gone. A refusal for a session that is still stored is not
   * final: its worker was evicted, or its claim expired.
   */
  async #open({ tenant, session_id: id }: BusySession, epoch: number): Promise<boolean> {
    const { open, isStored } = this.#deps
    try {
      return (await open({ tenant, id })) !== epoch
    } catch (cause) {
      return hasKind(cause, 'not_found') && !(await isStored({ tenant, id }).catch(() => true))
    }
  }
}

/** Shuffles the items, so that several gateways do the same work in different orders. */
const shuffled = <T>(items: readonly T[]): T[] =>
  items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
