import { setTimeout as sleep } from 'node:timers/promises'
import { retryUntil } from '../../kernel/async/retry.ts'
import { newToken } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { type Claim, HELD_SECS, isSameClaim, type Owners, RESERVED_SECS, type SessionKey } from './owners.ts'

const RETRY_MS = 500
/** How often the claim of another worker is read before the session is dropped. */
const CLAIM_ATTEMPTS = 10
/** Claims are repeated every hour and expire after a day. */
const REFRESH_MS = 3_600_000

/** A session in a worker's memory, and the token of its claim. */
export type HeldSession = SessionKey & { token: string }

/** The claims of this worker on sessions that it opens from the store. */
export type OwnClaims = {
  /** The token of the claim that names this worker; `undefined` when there is none. */
  find(session: SessionKey): Promise<string | undefined>
  /** Keeps the claim. Returns `false` when another worker has it by now. */
  confirm(session: HeldSession): Promise<boolean>
  release(session: HeldSession): Promise<boolean>
}

export type SessionClaims = OwnClaims & {
  /** Records that these runs are at this worker now. */
  moved(tenant: TenantId, runIds: readonly string[]): Promise<void>
}

/**
 * The claims of a worker that is created before its relay. The relay exists before the worker joins the cluster, and so
 * before there are sessions.
 */
export const claimsOf = (relay: () => { claims: OwnClaims; recordMoved: SessionClaims['moved'] }): SessionClaims => ({
  find: (session) => relay().claims.find(session),
  confirm: (session) => relay().claims.confirm(session),
  release: (session) => relay().claims.release(session),
  moved: (tenant, runIds) => relay().recordMoved(tenant, runIds),
})

export type HeldClaimsDeps<S extends HeldSession> = {
  owners: Owners
  /** This worker's epoch, which changes after an eviction. */
  epoch(): number
  sessions(): Iterable<S>
  /** Whether a worker is a member whose lease has not run out. */
  isAlive(epoch: number): boolean
  /** Whether a worker has left, or was evicted: it never comes back under this epoch. */
  isGone(epoch: number): boolean
  /** The session of this id in this worker's memory. */
  find(session: SessionKey): S | undefined
  /** Whether this worker hands its sessions over. */
  isDraining(): boolean
  /** Drops a session that another worker owns. */
  drop(session: S): void
}

/** The claims of one worker on the sessions in its memory. */
export class HeldClaims<S extends HeldSession> implements OwnClaims {
  readonly #deps: HeldClaimsDeps<S>
  /** Sessions that are offered to this worker, but not owned yet. */
  readonly #offered = new WeakSet<S>()
  /** The claims that were replaced when sessions were taken over. */
  readonly #taken = new WeakMap<S, Claim>()
  /** How often all sessions were claimed. */
  #rounds = 0
  #refresh: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(deps: HeldClaimsDeps<S>) {
    this.#deps = deps
  }

  start(): void {
    this.#refresh = setInterval(() => this.claimAll(), REFRESH_MS)
  }

  close(): void {
    clearInterval(this.#refresh)
    this.#isClosed = true
  }

  async find(session: SessionKey): Promise<string | undefined> {
    const claim = await this.#deps.owners.find(session)
    return claim?.epoch === this.#deps.epoch() ? claim.token : undefined
  }

  /** Claims a session of the worker of epoch `from`, which is no longer a member, to open it here. Returns `false` when another worker has it. */
  inherit(session: SessionKey, from: number): Promise<boolean> {
    return this.#deps.owners.takeOver(
      session,
      { from, to: this.#claimOf({ ...session, token: newToken() }) },
      RESERVED_SECS,
    )
  }

  /** Claims a session that this worker has created, or opened, for a gateway. Returns `false` when another worker has it by now. */
  async confirm(session: HeldSession): Promise<boolean> {
    const claim = this.#claimOf(session)
    return isSameClaim(await this.#deps.owners.claim(session, claim, HELD_SECS), claim)
  }

  /**
   * Gives this worker's session its claim back, after a gateway has claimed its id again: Redis had lost the claim, and this worker
   * had not repeated it yet.
   */
  async restore(session: HeldSession): Promise<void> {
    const held = this.#deps.find(session)
    if (!held) return
    const from = this.#claimOf(session)
    await this.#deps.owners.replace(held, { from, to: this.#claimOf(held) }, HELD_SECS)
  }

  /**
   * Whether this worker owns another session of the same id, so that the offer of this one comes too late: it was deleted, and its id has
   * been used again.
   */
  async isReplaced(session: HeldSession): Promise<boolean> {
    const held = this.#deps.find(session)
    if (!held || held.token === session.token) return false
    const isOwner = isSameClaim(await this.#deps.owners.find(held), this.#claimOf(held))
    const hasChanged = this.#deps.find(session) !== held
    return isOwner || hasChanged
  }

  /** Takes over the claim from the worker of epoch `from`. Returns `false` when that worker did not own the session any more. */
  async takeOver(session: S, from: number): Promise<boolean> {
    const claims = { from: { epoch: from, token: session.token }, to: this.#claimOf(session) }
    const rounds = this.#rounds
    this.#offered.add(session)
    const isTaken = await this.untilAnswered(() => this.#deps.owners.replace(session, claims, HELD_SECS))
    this.#offered.delete(session)
    if (isTaken) this.#taken.set(session, claims.from)
    if (isTaken && rounds !== this.#rounds) this.#claimInBackground(session) // Redis may have lost the claim again.
    return isTaken
  }

  /**
   * Invalidates the offers of a session to other workers: a late one could otherwise take it over while this worker continues it.
   * Returns `false` when this worker no longer owns the session.
   */
  async takeBack(session: S): Promise<boolean> {
    const from = this.#claimOf(session)
    const to = { ...from, token: newToken() }
    const isBack = await this.untilAnswered(() => this.#deps.owners.replace(session, { from, to }, HELD_SECS))
    session.token = to.token
    if (this.#has(session)) return isBack
    await this.release(session) // It was removed meanwhile, under its old claim.
    return false
  }

  /** Deletes the claim of a session that was removed here. Returns `false` when another worker owns the session by now. */
  release(session: HeldSession): Promise<boolean> {
    const claim = this.#claimOf(session)
    return this.untilAnswered(() => this.#deps.owners.release(session, claim))
  }

  /** Claims all sessions again: the claims expire after a day, and Redis may have lost its keys. */
  claimAll(): void {
    this.#rounds++
    for (const session of this.#deps.sessions()) if (!this.#offered.has(session)) this.#claimInBackground(session)
  }

  /**
   * Repeats a claim that Redis may have lost until Redis has it. Returns `false` when another worker owns the session: a client may have
   * created it again there meanwhile. The claim of a worker that is gone may only be one that a replica had
   * not seen change: it is replaced.
   */
  async claimAgain(session: S): Promise<boolean> {
    for (let attempt = 1; attempt <= CLAIM_ATTEMPTS; attempt++) {
      if (attempt > 1) await sleep(RETRY_MS, undefined, { ref: false })
      if (attempt > 1 && !this.#has(session)) return true // It may have been removed meanwhile.
      const claim = this.#claimOf(session)
      const holder = await this.#claimOnce(session, claim)
      if (isSameClaim(holder, claim)) return true
      // If both claims have the same token, this worker's claim is the later one, unless this worker hands its sessions over.
      const isLatest = holder.token === claim.token && !this.#deps.isDraining()
      const isEarlier = holder.epoch === claim.epoch || isLatest || this.#wasTaken(session, holder)
      // At first, a worker that is not known to be gone may simply not be registered again yet.
      if (!isEarlier && !this.#deps.isGone(holder.epoch) && (attempt <= CLAIM_ATTEMPTS / 2 || this.#isOfOther(holder)))
        continue
      const isReplaced = () => this.#deps.owners.replace(session, { from: holder, to: claim }, HELD_SECS)
      if (await this.untilAnswered(isReplaced)) return true
    }
    return false
  }

  /** Repeats a change until Redis has answered, since a change without an answer may have had an effect. Throws after `close`. */
  untilAnswered<T>(change: () => Promise<T>): Promise<T> {
    return retryUntil(change, { pauses: RETRY_MS, mayPass: () => !this.#isClosed, ref: false })
  }

  #claimInBackground(session: S): void {
    this.#claimOrDrop(session).catch(() => {}) // This worker has left meanwhile.
  }

  async #claimOrDrop(session: S): Promise<void> {
    if (!(await this.claimAgain(session))) this.#deps.drop(session)
  }

  /** Returns the claim that Redis holds. A session that was removed here meanwhile is not claimed again. */
  #claimOnce(session: S, claim: Claim): Promise<Claim> {
    let isRepeated = false
    return this.untilAnswered(async () => {
      if (isRepeated && !this.#has(session)) return claim
      isRepeated = true
      return this.#deps.owners.claim(session, claim, HELD_SECS)
    })
  }

  #has(session: S): boolean {
    return this.#deps.find(session) === session
  }

  #isOfOther({ epoch }: Claim): boolean {
    return epoch !== this.#deps.epoch() && this.#deps.isAlive(epoch)
  }

  /** A replica may have the claim of the worker from which the session came. */
  #wasTaken(session: S, holder: Claim): boolean {
    const taken = this.#taken.get(session)
    return taken !== undefined && isSameClaim(holder, taken)
  }

  #claimOf({ token }: HeldSession): Claim {
    return { epoch: this.#deps.epoch(), token }
  }
}
