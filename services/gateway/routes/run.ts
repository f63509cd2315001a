import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/broker/port.ts'
import type { ReadBody } from '../body.ts'
import { tenantOf } from '../middleware/auth.ts'
import type { Relay } from '../sse.ts'

type Deps = { broker: Broker; readBody: ReadBody; relay: Relay }

/** One-shot runs: refusals are statuses, since the stream opens only once the run is accepted. */
export function startRun({ broker, readBody, relay }: Deps): RequestHandler {
  return async (req, res) => {
    const { customer_id, ...request } = await readBody(req, res, 'RunRequest')
    const customer = customer_id ? { customer_id } : {} // Empty is the stateless path, as if absent (D2.11).
    relay(await broker.startRun(tenantOf(res), { ...request, ...customer }), res)
  }
}
