import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { AppError, invalidRequest } from '../../../shared/kernel/errors.ts'
import type { Steer } from '../../../shared/kernel/events.ts'
import { isQueuedRun, newId } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import {
  canonicalHash,
  type Idempotency,
  type KeyUse,
  keyMismatch,
} from '../../../shared/platform/store/idempotency.ts'
import type { ReadBody } from '../bodies/body.ts'
import { subjectOf, tenantOf } from '../middleware/auth.ts'
import { idempotencyKeyOf, pathId, RUN } from '../params.ts'

export type SteerDeps = { broker: Pick<Broker, 'getRun' | 'steerRun'>; keys: Idempotency; readBody: ReadBody }

/** Sends a text to a running run (D49). */
export function steerRun({ broker, keys, readBody }: SteerDeps): RequestHandler {
  return async (req, res) => {
    const [tenant, runId, key] = [tenantOf(res), pathId(req, 'run_id', RUN), idempotencyKeyOf(req)]
    const request = await readBody(req, res, 'SteerRequest')
    if (isQueuedRun(runId)) throw takesNothing(await broker.getRun(tenant, runId))
    const steer = { id: newId('steer'), text: request.prompt, by: subjectOf(res) }
    const tell = (id: string) => broker.steerRun(tenant, runId, { ...steer, id })
    const use = key === undefined ? undefined : { operation: `steer ${runId}`, key, hash: canonicalHash(request) }
    const told = use ? await tellOnce(keys, tenant, { use, steer, tell }) : await tell(steer.id)
    if (told?.isReplayed) res.setHeader('Idempotency-Replayed', 'true')
    res.status(202).json({ status: 'accepted', id: told?.id ?? steer.id })
  }
}

const takesNothing = ({ run_id, kind = 'flow' }: { run_id: string; kind?: string }): AppError =>
  invalidRequest(
    `nobody can tell ${run_id} anything: it is the run of a ${kind}. Cancel it, and start it with another input`,
  )

/**
 * Put before the id in a key's value once the run has accepted the text. From then on a repetition succeeds, even after
 * the run has ended.
 */
const ACCEPTED = 'accepted_'

type Told = { id: string; isReplayed: boolean }
type Telling = { use: KeyUse & { hash: string }; steer: Steer; tell(id: string): Promise<void> }

/**
 * A repeated request sends the same id again, and the run ignores a text whose id it already knows. A refusal frees the key.
 */
async function tellOnce(keys: Idempotency, tenant: TenantId, { use, steer, tell }: Telling): Promise<Told> {
  const reservation = await keys.reserve(tenant, { ...use, id: steer.id })
  if (reservation.state === 'mismatch') throw keyMismatch()
  const isReplayed = reservation.state === 'taken'
  const id = reservation.state === 'taken' ? reservation.id : steer.id
  if (id.startsWith(ACCEPTED)) return { id: id.slice(ACCEPTED.length), isReplayed }
  try {
    await tell(id)
  } catch (cause) {
    // A request that was answered 503 may have been carried out, so the key is not freed.
    if (cause instanceof AppError && cause.kind !== 'unavailable')
      await keys.release(tenant, { ...use, id }).catch(() => {})
    throw cause
  }
  await keys.replace(tenant, { ...use, from: id, to: ACCEPTED + id }).catch(() => {}) // A failure does not matter: until the run ends, it recognizes the id.
  return { id, isReplayed }
}
