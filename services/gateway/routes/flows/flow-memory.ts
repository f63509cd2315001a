import type { Request } from 'express'
import type { RouteTable } from '../../../http/routes.ts'
import type { ReadBody } from '../../bodies/body.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { FLOW, pageRequestOf, pathId, queryText, queryValue, type ValueForm } from '../../params.ts'
import { requires } from '../requires.ts'
import type { FlowSurface } from './flows.ts'

type Deps = { flows: FlowSurface | undefined; readBody: ReadBody }

/** The memory of a flow (D6.7). */
export function flowMemoryRoutes({ flows, readBody }: Deps): RouteTable {
  const stored = requires('flows', flows)
  return {
    '/flows/:name/memory': {
      get: stored(({ memory }) => async (req, res) => {
        const page = { ...scopeOf(req), ...pageRequestOf(req) }
        res.json(await memory.list(tenantOf(res), pathId(req, 'name', FLOW), page))
      }),
      post: stored(({ memory }) => async (req, res) => {
        const name = pathId(req, 'name', FLOW)
        const scope = scopeOf(req)
        const { content } = await readBody(req, res, 'FlowMemoryRequest')
        res.status(201).json(await memory.add(tenantOf(res), name, { ...scope, content }))
      }),
      deleteQuery: ['scope', 'entry_id'],
      delete: stored(({ memory }) => async (req, res) => {
        const entryId = queryValue(req, 'entry_id', ENTRY)
        const which = { ...scopeOf(req), ...(entryId !== undefined && { entryId }) }
        const count = await memory.remove(tenantOf(res), pathId(req, 'name', FLOW), which)
        res.json({ status: 'deleted', count })
      }),
    },
  }
}

const ENTRY: ValueForm = { pattern: /^mem_[0-9a-f]{32}$/, wanted: 'the id of an entry, mem_ and 32 hex digits' }

function scopeOf(req: Request): { scope?: string } {
  const scope = queryText(req, 'scope')
  return scope === undefined ? {} : { scope }
}
