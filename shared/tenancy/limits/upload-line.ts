import { AppError, invalidRequest, tooMany } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { type ShareLimits, TenantShares } from '../../platform/fairness/tenant-shares.ts'

export type UploadLineLimits = {
  uploads: ShareLimits
  /** The limits of the bytes that uploads may put on the disk. */
  bytes: ShareLimits
  waitMs: number
  maxWaiting: number
}

/** An upload that was admitted. */
export type UploadPlace = {
  /** Reports how many bytes it has actually put on the disk. */
  shrinkTo(bytes: number): void
  /** To be called once the upload is over and its file is gone; further calls do nothing. */
  leave(): void
}

/** `bytes`: the most that it may put on the disk. */
type Demand = { tenant: TenantId; bytes: number }
type Waiter = Demand & { admit(): void }

const BUSY_RETRY_SECS = 10

/**
 * Admits uploads as long as their number and their bytes are within the limits (D9.3). Others wait in a queue. A tenant may use all places, but its
 * use above its share does not count against a tenant below its share: so no tenant waits for the hanging uploads of another one, and all together
 * use at most (2 - share) times the limits. Uploads of a tenant that uses its share wait behind the others. Otherwise the order is kept, so that
 * small uploads do not overtake a large one again and again.
 */
export class UploadLine {
  readonly #limits: UploadLineLimits
  readonly #uploads: TenantShares
  readonly #bytes: TenantShares
  #waiting: Waiter[] = []

  constructor(limits: UploadLineLimits) {
    this.#limits = limits
    this.#uploads = new TenantShares(limits.uploads)
    this.#bytes = new TenantShares(limits.bytes)
  }

  /**
   * Resolves when the upload may be received. Throws `unavailable`, or `rate_limit` for a tenant that has its share, when its turn does not come in
   * time or too many wait; `invalid_request` when `signal` is aborted first.
   */
  async enter(demand: Demand, signal: AbortSignal): Promise<UploadPlace> {
    if (signal.aborted) throw clientLeft()
    if (this.#waiting.length === 0 && this.#fits(demand)) return this.#take(demand)
    if (this.#waiting.length >= this.#limits.maxWaiting) throw this.#refusal(demand)
    const { promise, resolve, reject } = Promise.withResolvers<UploadPlace>()
    const waiter: Waiter = { ...demand, admit: () => resolve(this.#take(demand)) }
    const giveUp = (error: AppError) => {
      reject(error)
      this.#remove(waiter)
      this.#admitNext() // The next one may be smaller.
    }
    const timer = setTimeout(() => giveUp(this.#refusal(demand)), this.#limits.waitMs).unref()
    const onAbort = () => giveUp(clientLeft())
    signal.addEventListener('abort', onAbort)
    this.#waiting.push(waiter)
    this.#admitNext()
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
  }

  #admitNext(): void {
    for (let next = this.#first(); next && this.#fits(next); next = this.#first()) {
      this.#remove(next)
      next.admit()
    }
  }

  #remove(waiter: Waiter): void {
    this.#waiting = this.#waiting.filter((other) => other !== waiter)
  }

  /** The first upload of a tenant that has less than its share; if there is none, the first upload of all. */
  #first(): Waiter | undefined {
    return this.#waiting.find((waiter) => !this.#hasShare(waiter)) ?? this.#waiting[0]
  }

  #fits(demand: Demand): boolean {
    if (this.#hasShare(demand)) return !this.#uploads.exceedsAll(1) && !this.#bytes.exceedsAll(demand.bytes)
    return !this.#uploads.exceedsShares(1) && !this.#bytes.exceedsShares(demand.bytes)
  }

  #hasShare({ tenant, bytes }: Demand): boolean {
    return this.#uploads.exceedsShare(tenant, 1) || this.#bytes.exceedsShare(tenant, bytes)
  }

  #take({ tenant, bytes }: Demand): UploadPlace {
    let held = bytes
    let isOver = false
    this.#uploads.add(tenant, 1)
    this.#bytes.add(tenant, held)
    const shrinkTo = (left: number) => {
      if (isOver || left >= held) return
      this.#bytes.add(tenant, left - held)
      held = left
      this.#admitNext()
    }
    const leave = () => {
      if (isOver) return
      isOver = true
      this.#uploads.add(tenant, -1)
      this.#bytes.add(tenant, -held)
      this.#admitNext()
    }
    return { shrinkTo, leave }
  }

  #refusal(demand: Demand): AppError {
    if (this.#hasShare(demand)) return tooManyOfTenant()
    return new AppError('unavailable', 'this server handles as many uploads as it can; try again', {
      retryAfterSecs: BUSY_RETRY_SECS,
    })
  }
}

const clientLeft = () => invalidRequest('the client closed the connection before it was the turn of its upload')

const tooManyOfTenant = () =>
  tooMany('this tenant has its share of the uploads here; try again when one has ended', BUSY_RETRY_SECS)
