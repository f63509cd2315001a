import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/cluster/port.ts'
import type { ReadBody } from '../body.ts'
import { tenantOf } from '../middleware/auth.ts'
import { PERMISSION, pageOf, pathId, queryValue, SESSION } from '../params.ts'

type Deps = { broker: Broker; readBody: ReadBody }
const STATE = { pattern: /^(pending|remembered)$/, wanted: 'pending or remembered' }

type PermissionRoutes = Record<'list' | 'reply', RequestHandler>

/**
 * Lists and answers pending permission requests. The first id in the path of a reply is a session's or a one-shot run's (D4.1,
 * D4.12).
 */
export function permissionRoutes({ broker, readBody }: Deps): PermissionRoutes {
  return {
    async list(req, res) {
      const isRemembered = queryValue(req, 'state', STATE) === 'remembered'
      const list = isRemembered ? broker.listRemembered : broker.listPermissions
      res.json(await list(tenantOf(res), pageOf(req)))
    },
    async reply(req, res) {
      const scopeId = pathId(req, 'id', SESSION)
      const requestId = pathId(req, 'request_id', PERMISSION)
      const reply = await readBody(req, res, 'PermissionReplyRequest')
      await broker.replyPermission(tenantOf(res), scopeId, requestId, reply)
      res.json({ status: 'ok' })
    },
  }
}
