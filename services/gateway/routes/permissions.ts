import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/broker/port.ts'
import type { ReadBody } from '../body.ts'
import { tenantOf } from '../middleware/auth.ts'
import { PERMISSION, pathId, SESSION } from '../params.ts'

type Deps = { broker: Broker; readBody: ReadBody }

/** Answers a `permission_request`; the first id is a session's or a one-shot run's (D4.1). */
export function replyPermission({ broker, readBody }: Deps): RequestHandler {
  return async (req, res) => {
    const scopeId = pathId(req, 'id', SESSION)
    const requestId = pathId(req, 'request_id', PERMISSION)
    const reply = await readBody(req, res, 'PermissionReplyRequest')
    await broker.replyPermission(tenantOf(res), scopeId, requestId, reply)
    res.json({ status: 'ok' })
  }
}
