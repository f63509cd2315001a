import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import { canonicalHash, type Idempotency } from '../../../../shared/platform/store/idempotency.ts'

/** A request of a client; the session is the one that it was given when it began. */
export type CallRef = { sessionId: string; requestId: string | number }

/** Stands for a call that was cancelled before its run was known. */
const CANCELLED = 'cancelled'

/**
 * The runs that the calls of sessions stand for. A client of the protocol of 2025 cancels a call with a request of its own, which may reach
 * another gateway; so they are beside the Idempotency-Keys, where every gateway finds them for a day.
 */
export class SessionCalls {
  readonly #keys: Idempotency

  constructor(keys: Idempotency) {
    this.#keys = keys
  }

  /** Returns whether the client has cancelled the call before. An id that is used again stands for its newest run. */
  async begin(tenant: TenantId, call: CallRef, runId: string): Promise<boolean> {
    const reservation = await this.#keys.reserve(tenant, { ...useOf(call), hash: '', id: runId })
    if (reservation.state !== 'taken') return false
    if (reservation.id === CANCELLED) return true
    await this.#keys.replace(tenant, { ...useOf(call), from: reservation.id, to: runId })
    return false
  }

  /** Returns the run to be cancelled. Without one the call is cancelled when it begins. */
  async cancel(tenant: TenantId, call: CallRef): Promise<string | undefined> {
    const reservation = await this.#keys.reserve(tenant, { ...useOf(call), hash: '', id: CANCELLED })
    return reservation.state === 'taken' ? reservation.id : undefined
  }
}

const useOf = ({ sessionId, requestId }: CallRef) => ({
  operation: 'mcp call',
  key: canonicalHash([sessionId, requestId]),
})
