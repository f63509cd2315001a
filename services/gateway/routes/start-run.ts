import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/cluster/port.ts'
import type { ReadBody } from '../body.ts'
import { tenantOf } from '../middleware/auth.ts'
import type { Relay } from '../sse.ts'

type Deps = { broker: Broker; readBody: ReadBody; relay: Relay }

/** Starts a one-shot run. A refusal is a plain HTTP error, because the stream opens only after the run is accepted. */
export function startRun({ broker, readBody, relay }: Deps): RequestHandler {
  return async (req, res) => {
    const { customer_id, ...request } = await readBody(req, res, 'RunRequest')
    const customer = customer_id ? { customer_id } : {} // An empty id counts as none (D2.11).
    relay(await broker.startRun(tenantOf(res), { ...request, ...customer }), res)
  }
}
