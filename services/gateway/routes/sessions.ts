import type { RequestHandler } from 'express'
import { seedHistory } from '../../../shared/agent/engine/messages/seed.ts'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { ReadBody } from '../bodies/body.ts'
import { tenantOf } from '../middleware/auth.ts'
import { pageRequestOf, pathId, queryValue, SESSION, type ValueForm } from '../params.ts'

type Deps = { broker: Broker; readBody: ReadBody }
type SessionRoutes = Record<'create' | 'fork' | 'list' | 'read' | 'messages' | 'rename' | 'remove', RequestHandler>

/** Creates, forks, lists, reads, renames and deletes sessions (api.md "Sessions", D23). */
export function sessionRoutes({ broker, readBody }: Deps): SessionRoutes {
  return {
    async create(req, res) {
      const { session_id: id, messages = [] } = await readBody(req, res, 'CreateSessionRequest')
      seedHistory(messages) // Called to throw for a history that the worker would refuse.
      const seed = messages.length > 0 ? [messages] : []
      const { session_id, created_at } = await broker.createSession(tenantOf(res), id, ...seed)
      res.status(201).json({ session_id, created_at })
    },
    async fork(req, res) {
      const { at, session_id: id } = await readBody(req, res, 'ForkSessionRequest')
      const branch = await broker.branchOf(tenantOf(res), pathId(req, 'id', SESSION), at)
      const { session_id, created_at } = await broker.createSession(tenantOf(res), id, branch)
      res.status(201).json({ session_id, created_at, from: branch.from })
    },
    async list(req, res) {
      res.json(await broker.listSessions(tenantOf(res), pageRequestOf(req)))
    },
    async read(req, res) {
      res.json(await broker.getSession(tenantOf(res), pathId(req, 'id', SESSION)))
    },
    async messages(req, res) {
      const head = queryValue(req, 'head', MESSAGE_ID)
      const filter = { ...pageRequestOf(req), ...(head !== undefined && { head }) }
      res.json(await broker.listMessages(tenantOf(res), pathId(req, 'id', SESSION), filter))
    },
    async rename(req, res) {
      const id = pathId(req, 'id', SESSION)
      const { title } = await readBody(req, res, 'UpdateSessionRequest')
      res.json(await broker.renameSession(tenantOf(res), id, title))
    },
    async remove(req, res) {
      await broker.deleteSession(tenantOf(res), pathId(req, 'id', SESSION))
      res.json({ status: 'deleted' })
    },
  }
}

/** Includes ids that a client has given its messages. */
const MESSAGE_ID: ValueForm = { pattern: /^[^]{1,256}$/u, wanted: 'the id of a message' }
