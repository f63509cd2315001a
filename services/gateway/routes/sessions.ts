import type { RequestHandler } from 'express'
import type { Broker } from '../../../shared/cluster/port.ts'
import type { ReadBody } from '../body.ts'
import { tenantOf } from '../middleware/auth.ts'
import { pathId, SESSION } from '../params.ts'

type Deps = { broker: Broker; readBody: ReadBody }
type SessionRoutes = Record<'create' | 'read' | 'remove', RequestHandler>

/** Creates, reads and deletes sessions (api.md "Sessions"). */
export function sessionRoutes({ broker, readBody }: Deps): SessionRoutes {
  return {
    async create(req, res) {
      const request = await readBody(req, res, 'CreateSessionRequest')
      const { session_id, created_at } = await broker.createSession(tenantOf(res), request.session_id)
      res.status(201).json({ session_id, created_at })
    },
    async read(req, res) {
      res.json(await broker.getSession(tenantOf(res), pathId(req, 'id', SESSION)))
    },
    async remove(req, res) {
      await broker.deleteSession(tenantOf(res), pathId(req, 'id', SESSION))
      res.json({ status: 'deleted' })
    },
  }
}
