import { setTimeout as sleep } from 'node:timers/promises'
import { type Claim, HELD_SECS, isSameClaim, type Owners, type SessionKey } from './owners.ts'

const RETRY_MS = 500
/** Claims are repeated every hour and expire after a day. */
const REFRESH_MS = 3_600_000

/** A session in a worker's memory, and the token of its creation. */
export type HeldSession = SessionKey & { readonly token: string }

export type HeldClaimsDeps<S extends HeldSession> = {
  owners: Owners
  /** This worker's epoch, which changes when it was evicted. */
  epoch(): number
  sessions(): Iterable<S>
  /** Drops a session that another worker owns. */
  drop(session: S): void
}

/** The claims of one worker on the sessions in its memory. */
export class HeldClaims<S extends HeldSession> {
  readonly #deps: HeldClaimsDeps<S>
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

  /** Claims a session that this worker has created for a gateway. Returns `false` when it is another worker's by now. */
  async confirm(session: HeldSession): Promise<boolean> {
    const claim = this.#claimOf(session)
    return isSameClaim(await this.#deps.owners.claim(session, claim, HELD_SECS), claim)
  }

  /**
   * Gives this worker's session its claim back, after a gateway has claimed its id anew: Redis had lost the claim, and this worker
   * had not repeated it yet.
   */
  async restore({ tenant, id, token }: HeldSession): Promise<void> {
    const held = Array.from(this.#deps.sessions()).find((each) => each.tenant === tenant && each.id === id)
    if (!held) return
    const from = { epoch: this.#deps.epoch(), token }
    await this.#deps.owners.replace(held, { from, to: this.#claimOf(held) }, HELD_SECS)
  }

  /** Takes the claim over from the worker of epoch `from`. Returns `false` when that worker did not own the session any more. */
  takeOver(session: S, from: number): Promise<boolean> {
    const claims = { from: { epoch: from, token: session.token }, to: this.#claimOf(session) }
    return this.#untilAnswered(() => this.#deps.owners.replace(session, claims, HELD_SECS))
  }

  /** Deletes the claim of a session that was removed here. Returns `false` when another worker owns the session by now. */
  release(session: HeldSession): Promise<boolean> {
    const claim = this.#claimOf(session)
    return this.#untilAnswered(() => this.#deps.owners.release(session, claim))
  }

  /** Claims all sessions again: the claims expire after a day, and Redis may have lost its keys. */
  claimAll(): void {
    for (const session of this.#deps.sessions()) {
      this.#claimAgain(session).catch(() => {}) // This worker has left meanwhile.
    }
  }

  /**
   * Repeats a claim. After Redis has lost its keys a client may have created the session again on another worker: then this
   * worker drops it, so that the session has one owner.
   */
  async #claimAgain(session: S): Promise<void> {
    const claim = this.#claimOf(session)
    const isHeld = () => Array.from(this.#deps.sessions()).includes(session)
    let isRepeated = false
    const holder = await this.#untilAnswered(async () => {
      if (isRepeated && !isHeld()) return claim // It was removed meanwhile.
      isRepeated = true
      return this.#deps.owners.claim(session, claim, HELD_SECS)
    })
    if (!isSameClaim(holder, claim)) this.#deps.drop(session)
  }

  #claimOf({ token }: HeldSession): Claim {
    return { epoch: this.#deps.epoch(), token }
  }

  /** Repeats a change until Redis has answered, since a change without an answer may have had an effect. Throws after `close`. */
  async #untilAnswered<T>(change: () => Promise<T>): Promise<T> {
    while (true) {
      try {
        return await change()
      } catch (cause) {
        if (this.#isClosed) throw cause
        await sleep(RETRY_MS, undefined, { ref: false })
      }
    }
  }
}
