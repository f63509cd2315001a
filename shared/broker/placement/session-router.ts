import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, conflict, notFound } from '../../errors.ts'
import type { TenantId } from '../../tenant.ts'
import type { Owners } from './owners.ts'
import type { Workers } from './workers.ts'

export type SessionRouterDeps = {
  workers: Pick<Workers, 'isAlive' | 'ownerOf'>
  owners: Owners
  /** Lists the members again if this epoch is unknown, since it may have just joined. Returns whether it is an alive worker. */
  discoverWorker(epoch: number): Promise<boolean>
  /** `false` while the workers write their claims again after Redis lost its keys: a missing claim then proves nothing. */
  isRebuilt(): Promise<boolean>
}

/** Creates a session on the worker of this epoch, or deletes what a creation without an answer may have left there. */
export type SessionCreation<T> = { create(epoch: number): Promise<T>; undo(epoch: number): void }

/** How long a hand-off of a session may take, and how often its owner is looked up meanwhile. */
const HANDOFF_MS = 5_000
const HANDOFF_STEP_MS = 50

/**
 * Finds the worker of a session. Hashing chooses the worker of a new session; the claim is what decides, and what later calls
 * look up.
 */
export class SessionRouter {
  readonly #deps: SessionRouterDeps

  constructor(deps: SessionRouterDeps) {
    this.#deps = deps
  }

  /** Creates a session on the worker it hashes to. If that one does not answer, undoes it there and creates it on the next. */
  async create<T>(tenant: TenantId, sessionId: string, { create, undo }: SessionCreation<T>): Promise<T> {
    const epoch = await this.#claim(tenant, sessionId)
    try {
      return await this.#createOrRelease(tenant, sessionId, { epoch, create })
    } catch (cause) {
      if (!isUnanswered(cause)) throw cause
      undo(epoch)
      const next = await this.#claim(tenant, sessionId, epoch)
      return await this.#createOrRelease(tenant, sessionId, { epoch: next, create })
    }
  }

  /**
   * Calls the session's owner. During a hand-off the owner refuses because it is draining, or no longer has the session: the
   * owner is then looked up and called again, for as long as a hand-off may take.
   */
  async callOwner<T>(tenant: TenantId, sessionId: string, call: (epoch: number) => Promise<T>): Promise<T> {
    const until = performance.now() + HANDOFF_MS
    while (true) {
      const epoch = await this.#findOwner(tenant, sessionId)
      try {
        return await call(epoch)
      } catch (cause) {
        const hasMoved = (await this.#deps.owners.find(tenant, sessionId)) !== epoch
        if (!hasMoved && !isDraining(cause)) throw cause
        if (performance.now() > until) throw cause
        await sleep(HANDOFF_STEP_MS)
      }
    }
  }

  /** Claims the session for the worker it hashes to. A claim of a dead worker is taken over. */
  async #claim(tenant: TenantId, sessionId: string, without?: number): Promise<number> {
    const { workers, owners, isRebuilt } = this.#deps
    const candidate = workers.ownerOf(`${tenant} ${sessionId}`, without)
    if (candidate === undefined) throw noWorker()
    if (!(await isRebuilt())) throw rebuilding()
    const owner = await owners.claim(tenant, sessionId, candidate)
    if (owner === candidate) return candidate
    const isTaken =
      workers.isAlive(owner) || !(await owners.transfer(tenant, sessionId, { from: owner, to: candidate }))
    if (isTaken)
      throw conflict(`session ${sessionId} exists already; choose another session_id, or send messages to it`)
    return candidate
  }

  async #createOrRelease<T>(
    tenant: TenantId,
    sessionId: string,
    { epoch, create }: { epoch: number; create(epoch: number): Promise<T> },
  ): Promise<T> {
    try {
      return await create(epoch)
    } catch (cause) {
      // After a conflict the claim is kept: the worker does have a session of this id.
      const isConflict = cause instanceof AppError && cause.kind === 'conflict'
      if (!isConflict) await this.#deps.owners.release(tenant, sessionId, epoch)
      throw cause
    }
  }

  /** Throws `not_found` when no worker that is alive owns the session: sessions end with their worker. */
  async #findOwner(tenant: TenantId, sessionId: string): Promise<number> {
    const { workers, owners, discoverWorker, isRebuilt } = this.#deps
    const epoch = await owners.find(tenant, sessionId)
    if (epoch !== undefined && (workers.isAlive(epoch) || (await discoverWorker(epoch)))) return epoch
    if (epoch === undefined && !(await isRebuilt())) throw rebuilding()
    throw notFound(`no session ${sessionId}: create it with POST /sessions`)
  }
}

export const noWorker = () =>
  new AppError('unavailable', 'no worker is available at the moment; try again', { retryAfterSecs: 2 })

const rebuilding = () =>
  new AppError('unavailable', 'the cluster is restoring its list of sessions; try again', { retryAfterSecs: 2 })

/** The worker did not answer: it is unknown whether it did what was asked. */
export const isUnanswered = (cause: unknown) => cause instanceof AppError && cause.code === 'worker_silent'

/** The worker is draining: it takes no new work and hands its sessions to others. */
export const isDraining = (cause: unknown) => cause instanceof AppError && cause.code === 'worker_draining'
