import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, conflict, notFound } from '../../errors.ts'
import type { TenantId } from '../../tenant.ts'
import type { Owners } from './owners.ts'
import type { Workers } from './workers.ts'

export type PlacesDeps = {
  workers: Workers
  owners: Owners
  /** Whether a worker that is not known lives all the same: it may have just joined. */
  isNew(epoch: number): Promise<boolean>
  /** `false` while what Redis knew is being written again after a loss: then what is missing in it is not known to be missing. */
  isWhole(): Promise<boolean>
}

/** How long a hand-over may take, and how often the owner is looked up meanwhile. */
const HAND_OVER_MS = 5_000
const HAND_OVER_STEP_MS = 50

/** Where sessions live: hashing chooses the worker of a new one, the claim decides and is what is found later (design §4.7). */
export class SessionRouter {
  readonly #deps: PlacesDeps

  constructor(deps: PlacesDeps) {
    this.#deps = deps
  }

  /** Creates a session on the worker it belongs to, or on the next one when that does not answer, where `undo` is called then. */
  async create<T>(
    tenant: TenantId,
    sessionId: string,
    { make, undo }: { make(epoch: number): Promise<T>; undo(epoch: number): void },
  ): Promise<T> {
    const epoch = await this.#claim(tenant, sessionId)
    try {
      return await this.#makeOrRelease(tenant, sessionId, { epoch, make })
    } catch (cause) {
      if (!isSilent(cause)) throw cause
      undo(epoch)
      const next = await this.#claim(tenant, sessionId, epoch)
      return await this.#makeOrRelease(tenant, sessionId, { epoch: next, make })
    }
  }

  /**
   * Asks the session's owner. While that is handing the session over it answers that it is draining, or no longer knows it:
   * then the next owner is asked, for as long as a hand-over may take.
   */
  async ask<T>(tenant: TenantId, sessionId: string, ask: (epoch: number) => Promise<T>): Promise<T> {
    const until = performance.now() + HAND_OVER_MS
    while (true) {
      const epoch = await this.#ownerOf(tenant, sessionId)
      try {
        return await ask(epoch)
      } catch (cause) {
        const hasMoved = (await this.#deps.owners.find(tenant, sessionId)) !== epoch
        if (!hasMoved && !isDraining(cause)) throw cause
        if (performance.now() > until) throw cause
        await sleep(HAND_OVER_STEP_MS)
      }
    }
  }

  async #claim(tenant: TenantId, sessionId: string, without?: number): Promise<number> {
    const { workers, owners, isWhole } = this.#deps
    const candidate = workers.ownerOf(`${tenant} ${sessionId}`, without)
    if (candidate === undefined) throw noWorker()
    if (!(await isWhole())) throw rebuilding()
    const owner = await owners.claim(tenant, sessionId, candidate)
    if (owner === candidate) return candidate
    const isTaken =
      workers.isAlive(owner) || !(await owners.transfer(tenant, sessionId, { from: owner, to: candidate }))
    if (isTaken) throw conflict(`session ${sessionId} exists already; choose another session_id or go on with it`)
    return candidate
  }

  async #makeOrRelease<T>(
    tenant: TenantId,
    sessionId: string,
    { epoch, make }: { epoch: number; make(epoch: number): Promise<T> },
  ): Promise<T> {
    try {
      return await make(epoch)
    } catch (cause) {
      // The worker's own answer counts: a session that it has already is a conflict, and stays claimed.
      const isConflict = cause instanceof AppError && cause.kind === 'conflict'
      if (!isConflict) await this.#deps.owners.release(tenant, sessionId, epoch)
      throw cause
    }
  }

  /** A session whose worker is gone is gone with it. */
  async #ownerOf(tenant: TenantId, sessionId: string): Promise<number> {
    const { workers, owners, isNew, isWhole } = this.#deps
    const epoch = await owners.find(tenant, sessionId)
    if (epoch !== undefined && (workers.isAlive(epoch) || (await isNew(epoch)))) return epoch
    if (epoch === undefined && !(await isWhole())) throw rebuilding()
    throw notFound(`no session ${sessionId}: create it with POST /sessions`)
  }
}

export const noWorker = () =>
  new AppError('unavailable', 'no worker is there to take this; try again', { retryAfterSecs: 2 })

const rebuilding = () =>
  new AppError('unavailable', 'the cluster is finding its sessions again; try again', { retryAfterSecs: 2 })

/** Nobody answered: whether it was done is not known. */
export const isSilent = (cause: unknown) => cause instanceof AppError && cause.code === 'worker_silent'

/** It is leaving: it takes nothing new, and hands on what it has. */
export const isDraining = (cause: unknown) => cause instanceof AppError && cause.code === 'worker_draining'
