import { setTimeout as sleep } from 'node:timers/promises'
import { newTraceId } from '../../../kernel/ids.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { canonicalHash, type Idempotency, keyMismatch } from '../../../platform/store/idempotency.ts'
import type { Dispatch } from '../port.ts'
import { isLost } from '../transitions.ts'

export type KeyedStart = {
  key: string
  /** The fields that must be equal for two requests to be the same. */
  body: object
  find(traceId: string): Promise<Dispatch | undefined>
  /** Whether the start of the execution waits for its place, so that its record comes later. Throws when the client that asks has left. */
  isWaiting(traceId: string): Promise<boolean>
  /** Starts an execution under this id, or throws a refusal. */
  execute(traceId: string): Promise<void>
  /** Makes sure that no execution begins under this id any more. Returns `false` when one has begun. */
  close(traceId: string): Promise<boolean>
}

const OPERATION = 'flow_run'

/** How long the record of an execution may take to appear after its key was reserved. */
const APPEARS_WITHIN_MS = 2_000
const LOOK_EVERY_MS = 50
/** How often the record is looked up while the start of its execution waits. */
const WAITING_LOOK_MS = 500

/**
 * Starts an execution once for each key (D6.6). A request with a key that was used joins the earlier execution. A refused execution frees the key,
 * and one that was lost with its executor is started again. Only the request that has chosen an id executes it: before another request takes over the
 * key, or the key is freed, the id is closed, because its execution may still be stored (D36.3).
 */
export async function startOnce(
  tenant: TenantId,
  start: KeyedStart,
  idempotency: Idempotency,
): Promise<{ traceId: string; isReplayed: boolean }> {
  const { key, body, close } = start
  const hash = canonicalHash(body)
  for (;;) {
    const traceId = newTraceId()
    const reservation = await idempotency.reserve(tenant, { operation: OPERATION, key, hash, id: traceId })
    if (reservation.state === 'mismatch') throw keyMismatch()
    if (reservation.state === 'taken') {
      const { id } = reservation
      const earlier = await waitFor(start, id)
      if (earlier && !isLost(earlier)) return { traceId: id, isReplayed: true }
      if (!earlier && !(await close(id))) continue
      if (!(await idempotency.replace(tenant, { operation: OPERATION, key, from: id, to: traceId }))) continue
    }
    await executeOrRelease(tenant, traceId, { start, idempotency })
    return { traceId, isReplayed: false }
  }
}

async function executeOrRelease(
  tenant: TenantId,
  traceId: string,
  { start, idempotency }: { start: KeyedStart; idempotency: Idempotency },
): Promise<void> {
  try {
    await start.execute(traceId)
  } catch (cause) {
    const free = async () => {
      if (await start.close(traceId))
        await idempotency.release(tenant, { operation: OPERATION, key: start.key, id: traceId })
    }
    // When this fails too, the next request finds the refused execution, or none, and takes over the key.
    await free().catch(() => {})
    throw cause
  }
}

/** Waits for the record of the execution that another request starts. */
async function waitFor({ find, isWaiting }: KeyedStart, traceId: string): Promise<Dispatch | undefined> {
  let until = performance.now() + APPEARS_WITHIN_MS
  for (;;) {
    const found = await find(traceId)
    if (found || performance.now() > until) return found
    const waits = await isWaiting(traceId)
    if (waits) until = performance.now() + APPEARS_WITHIN_MS
    await sleep(waits ? WAITING_LOOK_MS : LOOK_EVERY_MS)
  }
}
