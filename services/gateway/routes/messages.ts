import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/cluster/port.ts'
import type { ReadBody } from '../body.ts'
import { tenantOf } from '../middleware/auth.ts'
import { pathId, SESSION } from '../params.ts'
import type { Relay } from '../sse.ts'

type Deps = { broker: Broker; readBody: ReadBody; relay: Relay }

/** Continues a session's conversation. */
export function sendMessage({ broker, readBody, relay }: Deps): RequestHandler {
  return async (req, res) => {
    const sessionId = pathId(req, 'id', SESSION)
    const message = await readBody(req, res, 'SendMessageRequest')
    relay(await broker.sendMessage(tenantOf(res), sessionId, message), res)
  }
}
