import { LRUCache } from 'lru-cache'
import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import { AppError, tooMany } from '../../../kernel/errors.ts'
import { SYSTEM_TENANT, type TenantId } from '../../../kernel/tenant.ts'
import type { Collection, Scalar, Store, Total } from '../../../platform/store/port.ts'
import { WriteLoop } from '../../runs/records/write-loop.ts'
import type { PlanLimits } from '../port.ts'
import { ACTIVE_PLANS } from './documents.ts'

/** A plan that may not have ended. `bytes` is the length of its steps. */
export type ActivePlan = { plan_id: string; owner: TenantId; created_ms: number; bytes: number }

const PAGE = 500
const FULL_RETRY_SECS = 10
const MAX_FULL = 1_000
/**
 * A tenant that uses less than half of its room is not counted for each plan. `COUNTED_MS` is how long a count is then valid; the next constant is
 * for how many processes the rest of that half is enough before they count again. The other half is for plans that they do not know of each other.
 */
const COUNTED_MS = 1_000
const SHARING = 64
const MAX_COUNTED = 1_000
/** The least time between two deletions of the entries of ended plans: plans that end one after the other are deleted together. */
const LEAVE_EVERY_MS = 500

/** The plans of all tenants that have not ended, and the room that each tenant's plans take. */
export class ActivePlans {
  readonly #entries: Collection
  readonly #limits: PlanLimits
  /** The positions of the last plans of the pages that were returned. */
  readonly #positions = new LRUCache<string, Scalar[]>({ max: 1_000 })
  /** The tenants that had no room a short time ago. */
  readonly #full = new LRUCache<TenantId, true>({ max: MAX_FULL, ttl: 1_000 * FULL_RETRY_SECS })
  /** How much this process may still enter for a tenant without counting again. */
  readonly #allowed = new LRUCache<TenantId, Total>({ max: MAX_COUNTED, ttl: COUNTED_MS })
  readonly #turns = createKeyedQueue()
  /** The plans that have ended here and are still entered. */
  readonly #ended: string[] = []
  readonly #loop = new WriteLoop({
    write: () => this.#removeEnded(),
    dueInMs: () => (this.#ended.length > 0 ? 0 : undefined),
    leastMs: () => LEAVE_EVERY_MS,
  })

  constructor(store: Store, limits: PlanLimits) {
    this.#entries = store.collection(ACTIVE_PLANS)
    this.#limits = limits
  }

  /**
   * Enters a plan that is about to be stored, and returns whether it was not entered before. It is entered before it is counted, so that
   * concurrent creations, also in other processes, cannot exceed the limits unnoticed. Throws `rate_limit` above them.
   */
  async enter(entry: ActivePlan): Promise<boolean> {
    const entered = await this.#tryEnter(entry)
    if (!(entered instanceof AppError)) return entered
    // Many plans entered at the same time: they are tried again one after the other, so that those that still fit get their room.
    const again = await this.#turns.run(entry.owner, () => this.#enterIfRoom(entry))
    if (again instanceof AppError) throw again
    return again
  }

  async #enterIfRoom(entry: ActivePlan): Promise<boolean | AppError> {
    const problem = await this.#problem(entry.owner, { count: 1, sum: entry.bytes })
    return problem ?? this.#tryEnter(entry)
  }

  async #tryEnter(entry: ActivePlan): Promise<boolean | AppError> {
    const isNew = await this.#entries.insert(SYSTEM_TENANT, entry, { durability: 'ordered' })
    if (this.#isAllowed(entry)) return isNew
    const problem = await this.#problem(entry.owner, { count: 0, sum: 0 })
    if (!problem) return isNew
    if (isNew) await this.remove(entry.plan_id)
    return problem
  }

  /** Subtracts the entry from the amount that may be entered without counting, if it fits. */
  #isAllowed({ owner, bytes }: ActivePlan): boolean {
    const allowed = this.#allowed.get(owner)
    if (!allowed || allowed.count < 1 || allowed.sum < bytes) return false
    allowed.count -= 1
    allowed.sum -= bytes
    return true
  }

  /**
   * Throws `rate_limit` when a plan of at least this length has no room. Only tenants that had no room a short time ago are
   * looked up: that costs less than entering the plan and removing it again.
   */
  async assertRoom(owner: TenantId, leastBytes: number): Promise<void> {
    if (!this.#full.has(owner)) return
    const problem = await this.#problem(owner, { count: 1, sum: leastBytes })
    if (problem) throw problem
  }

  async #problem(owner: TenantId, more: Total): Promise<AppError | undefined> {
    await this.#loop.settled() // A plan that has ended here is no longer counted, even if its deletion is still running.
    const { count, sum } = await this.#entries.total(SYSTEM_TENANT, { owner })
    const { maxPlans, maxBytes } = this.#limits
    const hasRoom = count + more.count <= maxPlans && sum + more.sum <= maxBytes
    if (hasRoom) {
      this.#allowed.set(owner, { count: (maxPlans / 2 - count) / SHARING, sum: (maxBytes / 2 - sum) / SHARING })
      return undefined
    }
    this.#allowed.delete(owner)
    this.#full.set(owner, true)
    return count + more.count > maxPlans ? tooManyPlans(maxPlans) : tooLongPlans(maxBytes)
  }

  /** Enters a plan that is stored, if it is not entered. */
  async restore(entry: ActivePlan): Promise<void> {
    await this.#entries.insert(SYSTEM_TENANT, entry)
  }

  async get(planId: string): Promise<ActivePlan | undefined> {
    return (await this.#entries.get(SYSTEM_TENANT, { plan_id: planId }))?.doc as ActivePlan | undefined
  }

  /** Removes an ended plan soon, in the background. A sweep retires plans that remain. */
  leave(planId: string): void {
    this.#ended.push(planId)
    this.#loop.schedule()
  }

  async remove(planId: string): Promise<void> {
    await this.#entries.delete(SYSTEM_TENANT, { plan_id: planId })
  }

  async #removeEnded(): Promise<boolean> {
    const ended = this.#ended.splice(0)
    const keys = ended.map((plan_id) => ({ plan_id }))
    await this.#entries.deleteMany(SYSTEM_TENANT, keys).catch(() => {})
    return true
  }

  /** Oldest first. Continues after a plan that was returned before, even if it was removed since; otherwise begins at the start. */
  async page(after: string | undefined): Promise<ActivePlan[]> {
    const position = after === undefined ? undefined : await this.#positionOf(after)
    const found = await this.#entries.page(SYSTEM_TENANT, { after: position, limit: PAGE })
    const entries = found.map(({ doc }) => doc as ActivePlan)
    const last = entries.at(-1)
    if (last) this.#positions.set(last.plan_id, [last.created_ms, last.plan_id])
    return entries
  }

  async #positionOf(planId: string): Promise<Scalar[] | undefined> {
    const known = this.#positions.get(planId)
    if (known) return known
    const entry = await this.get(planId)
    return entry && [entry.created_ms, planId]
  }
}

const tooManyPlans = (max: number) =>
  tooMany(`this tenant has ${max} plans that wait or run, its limit; ${WHAT_TO_DO}`, FULL_RETRY_SECS)

const tooLongPlans = (max: number) =>
  tooMany(
    `with this one, the plans of this tenant that wait or run have more than ${max} bytes, its limit; ${WHAT_TO_DO}`,
    FULL_RETRY_SECS,
  )

const WHAT_TO_DO = 'submit it again when one has ended, or cancel some with POST /plans/{id}/cancel'
