import { setTimeout as sleep } from 'node:timers/promises'
import { retryUntil } from '../../kernel/async/retry.ts'
import { AppError, conflict, hasKind, notFound } from '../../kernel/errors.ts'
import { newToken } from '../../kernel/ids.ts'
import type { Workers } from '../members/workers.ts'
import { type Claim, isSameClaim, type Owners, RESERVED_SECS, type SessionKey } from './owners.ts'

export type SessionRouterDeps = {
  workers: Pick<Workers, 'isAlive' | 'ownerOf'>
  owners: Owners
  /** Asks Redis whether this epoch is a member. An epoch that is not a member never becomes one again. */
  isMember(epoch: number): Promise<boolean>
  /** `false` while the workers write their claims again after Redis lost its keys: a missing claim then proves nothing. */
  isRebuilt(): Promise<boolean>
  /** Whether a session is stored, so that a worker can open it. Left out: sessions end with their worker. */
  isStored?: ((session: SessionKey) => Promise<boolean>) | undefined
}

/** Creates a session under a claim, or deletes what a creation without an answer may have left at the claim's worker. */
export type SessionCreation<T> = { create(claim: Claim): Promise<T>; undo(claim: Claim): void }

/** `isKnown`: the session was stored a moment ago. If it no longer is, its worker reports that. */
type CallOptions = { isKnown?: boolean }

/** How long a hand-off of a session may take, and how often its owner is looked up meanwhile. */
const HANDOFF_MS = 5_000
const HANDOFF_STEP_MS = 50
/** How long the deletion of a stored session is tried again: the death of its worker is noticed only after some seconds. */
const DELETED_WITHIN_MS = 10_000
const RELEASE_EVERY_MS = 500

/**
 * Finds the worker of a session. Hashing chooses the worker of a new session; the claim decides, and later calls look it up.
 */
export class SessionRouter {
  readonly #deps: SessionRouterDeps

  constructor(deps: SessionRouterDeps) {
    this.#deps = deps
  }

  /**
   * Creates a session on the worker it hashes to. If that worker drains, has no room or does not answer, it creates the session on the
   * next one, and undoes a possible creation on the first. Throws `conflict` when the session exists.
   */
  async create<T>(session: SessionKey, creation: SessionCreation<T>): Promise<T> {
    const claim = await this.#reserve(session)
    return this.#createAt(session, claim, { ...creation, isLastTry: false })
  }

  /**
   * Calls the session's owner. During a hand-off the owner refuses because it is draining, or no longer has the session: the
   * owner is then looked up and called again, for as long as a hand-off may take. A live owner that does not answer is called a second time: it
   * may have been busy, and undoes a change that it could not answer in time.
   */
  async callOwner<T>(
    session: SessionKey,
    call: (claim: Claim) => Promise<T>,
    { isKnown = false }: CallOptions = {},
  ): Promise<T> {
    const until = performance.now() + HANDOFF_MS
    let isRepeated = false
    while (true) {
      const claim = await this.#findOwner(session, isKnown)
      try {
        return await call(claim)
      } catch (cause) {
        const present = await this.#deps.owners.find(session)
        // Without a claim no other worker has it, and an unanswered call may have been carried out.
        const hasMoved = present !== undefined && !isSameClaim(present, claim)
        const wasBusy = present !== undefined && isUnanswered(cause) && this.#deps.workers.isAlive(claim.epoch)
        if (!hasMoved && !isDraining(cause) && (!wasBusy || isRepeated)) throw await this.#refusal(cause)
        if (performance.now() > until) throw cause
        isRepeated ||= wasBusy && !hasMoved
        await sleep(HANDOFF_STEP_MS)
      }
    }
  }

  /**
   * As `callOwner`, for the deletion of the session: when its answer did not come and the session is gone, it was deleted. The worker of a stored
   * session may have died: once that is known, another worker opens the session and deletes it (D37.3).
   */
  async remove(session: SessionKey, call: (claim: Claim) => Promise<void>): Promise<void> {
    let mayBeDone = false
    const remove = () =>
      this.callOwner(session, async (claim) => {
        await call(claim).catch((cause: unknown) => {
          mayBeDone ||= isUnanswered(cause)
          throw cause
        })
      })
    const until = performance.now() + (this.#deps.isStored ? DELETED_WITHIN_MS : 0)
    try {
      await retryUntil(remove, { pauses: HANDOFF_STEP_MS, mayPass: isUnanswered, until, ref: false })
    } catch (cause) {
      if (!mayBeDone || !(await this.#isGone(session, cause))) throw cause
    }
  }

  async #isGone(session: SessionKey, cause: unknown): Promise<boolean> {
    const { owners, isRebuilt } = this.#deps
    return hasKind(cause, 'not_found') || ((await owners.find(session)) === undefined && isRebuilt())
  }

  /** A worker that does not know a session may have handed it over, and Redis may have lost the new claim. */
  async #refusal(cause: unknown): Promise<unknown> {
    return hasKind(cause, 'not_found') && !(await this.#deps.isRebuilt()) ? rebuilding() : cause
  }

  /** Claims a session that is to be created for the worker it hashes to. */
  async #reserve(session: SessionKey): Promise<Claim> {
    const claim = await this.#claim(session)
    if (!claim) throw exists(session)
    if (await this.#isStored(session, claim)) {
      await this.#release(session, claim)
      throw exists(session)
    }
    return claim
  }

  /** Asked under the claim: nobody else can create the session, or open it, meanwhile. */
  async #isStored(session: SessionKey, claim: Claim): Promise<boolean> {
    const { isStored = async () => false } = this.#deps
    return isStored(session).catch(async (cause: unknown) => {
      await this.#release(session, claim)
      throw cause
    })
  }

  /**
   * Claims the session for the worker it hashes to. The claim of a worker that is no longer a member is replaced. Returns `undefined` when
   * another claim holds.
   */
  async #claim(session: SessionKey): Promise<Claim | undefined> {
    const { workers, owners, isRebuilt } = this.#deps
    const epoch = workers.ownerOf(hashKeyOf(session))
    if (epoch === undefined) throw noWorker()
    if (!(await isRebuilt())) throw rebuilding()
    const claim = { epoch, token: newToken() }
    const holder = await owners.claim(session, claim, RESERVED_SECS).catch((cause: unknown) => {
      void this.#release(session, claim) // The claim may be valid all the same.
      throw cause
    })
    if (isSameClaim(holder, claim)) return claim
    if (await this.#isAlive(holder.epoch)) return undefined
    return (await owners.replace(session, { from: holder, to: claim }, RESERVED_SECS)) ? claim : undefined
  }

  async #createAt<T>(
    session: SessionKey,
    claim: Claim,
    creation: SessionCreation<T> & { isLastTry: boolean },
  ): Promise<T> {
    try {
      return await creation.create(claim)
    } catch (cause) {
      if (isUnanswered(cause)) creation.undo(claim)
      const mayMove = !creation.isLastTry && isRefusedForRoom(cause)
      const next = mayMove ? await this.#moveOn(session, claim) : undefined
      if (next) return this.#createAt(session, next, { ...creation, isLastTry: true })
      await this.#release(session, claim)
      throw cause
    }
  }

  /**
   * Resolves after the first try. If Redis does not answer, it continues to try in the background, so that the client
   * can create the session again.
   */
  async #release(session: SessionKey, claim: Claim): Promise<void> {
    const release = () => this.#deps.owners.release(session, claim)
    const until = performance.now() + 1_000 * RESERVED_SECS // After that the claim expires by itself.
    await release().catch(
      () => void retryUntil(release, { pauses: RELEASE_EVERY_MS, until, ref: false }).catch(() => {}),
    )
  }

  /** Replaces the claim by one for the next worker. Returns `undefined` when there is no next worker, or the claim has changed. */
  async #moveOn(session: SessionKey, claim: Claim): Promise<Claim | undefined> {
    const epoch = this.#deps.workers.ownerOf(hashKeyOf(session), claim.epoch)
    if (epoch === undefined) return undefined
    const next = { epoch, token: newToken() }
    const isMoved = await this.#deps.owners.replace(session, { from: claim, to: next }, RESERVED_SECS)
    return isMoved ? next : undefined
  }

  /**
   * Throws `not_found` when no worker that is alive owns the session. A stored session is claimed for the worker it hashes to, which opens
   * it at the next call.
   */
  async #findOwner(session: SessionKey, isKnown: boolean): Promise<Claim> {
    const { owners, isRebuilt, isStored = async () => false } = this.#deps
    const claim = await owners.find(session)
    if (claim && (await this.#isAlive(claim.epoch))) return claim
    if (!(await isRebuilt())) throw rebuilding() // A replica may know the claim of an earlier owner.
    const written = await owners.find(session) // It may have been written again between the two answers.
    if (written && (await this.#isAlive(written.epoch))) return written
    if (!isKnown && !(await isStored(session)))
      throw notFound(`no session ${session.id}: create it with POST /sessions`)
    const opening = (await this.#claim(session)) ?? (await owners.find(session)) // Another gateway was faster.
    if (!opening) throw rebuilding()
    return opening
  }

  /** A worker that this gateway does not know may have just joined. */
  async #isAlive(epoch: number): Promise<boolean> {
    return this.#deps.workers.isAlive(epoch) || this.#deps.isMember(epoch)
  }
}

/** The key by which the hash ring chooses the worker of a session. */
export const hashKeyOf = ({ tenant, id }: SessionKey): string => `${tenant} ${id}`

const exists = ({ id }: SessionKey) =>
  conflict(`session ${id} exists already; choose another session_id, or send messages to it`)

export const noWorker = () =>
  new AppError('unavailable', 'no worker is available at the moment; try again', { retryAfterSecs: 2 })

const rebuilding = () =>
  new AppError('unavailable', 'the cluster is restoring its list of sessions; try again', { retryAfterSecs: 2 })

/** The worker did not answer: it is unknown whether it carried out the call. */
export const isUnanswered = (cause: unknown) => cause instanceof AppError && cause.code === 'worker_silent'

/** The worker has no room, for this tenant or for all, takes no new work at the moment, or does not answer. */
const isRefusedForRoom = (cause: unknown) =>
  cause instanceof AppError && (cause.kind === 'rate_limit' || cause.kind === 'unavailable')

/** The worker is draining: it takes no new work and hands its sessions to others. */
export const isDraining = (cause: unknown) => cause instanceof AppError && cause.code === 'worker_draining'
