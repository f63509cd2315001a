import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import { canonicalHash, type Idempotency } from '../../../../shared/platform/store/idempotency.ts'

/** A request of a client; the session is the one that `initialize` gave the client. */
export type CallRef = { sessionId: string; requestId: string | number }

/** Stored instead of a run's id for a call that was cancelled before its run was known. */
const CANCELLED = 'cancelled'

/**
 * The runs of the sessions' tool calls. In the protocol of 2025 a client cancels a call with another request, which may reach
 * another gateway; so the runs are stored beside the Idempotency-Keys, where every gateway finds them for a day.
 */
export class SessionCalls {
  readonly #keys: Idempotency

  constructor(keys: Idempotency) {
    this.#keys = keys
  }

  /** Returns whether the client has cancelled the call before. If a client uses an id again, the id belongs to the newest run. */
  async begin(tenant: TenantId, call: CallRef, runId: string): Promise<boolean> {
    const reservation = await this.#keys.reserve(tenant, { ...useOf(call), hash: '', id: runId })
    if (reservation.state !== 'taken') return false
    if (reservation.id === CANCELLED) return true
    await this.#keys.replace(tenant, { ...useOf(call), from: reservation.id, to: runId })
    return false
  }

  /** Returns the run to cancel. If there is none yet, the call is cancelled when it begins. */
  async cancel(tenant: TenantId, call: CallRef): Promise<string | undefined> {
    const reservation = await this.#keys.reserve(tenant, { ...useOf(call), hash: '', id: CANCELLED })
    return reservation.state === 'taken' ? reservation.id : undefined
  }
}

const useOf = ({ sessionId, requestId }: CallRef) => ({
  operation: 'mcp call',
  key: canonicalHash([sessionId, requestId]),
})
