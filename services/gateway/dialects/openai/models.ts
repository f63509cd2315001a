import type { Response } from 'express'
import { tenantOf } from '../../middleware/auth.ts'
import { FLOW } from '../../params.ts'
import type { DialectDeps } from '../dialect.ts'
import type { Fields } from '../shared/fields.ts'

/** The tenant's own route of prompts, or without one the server's model. */
const ROUTE = 'main'
const FLOW_PREFIX = 'flow:'

/** The `model` of a request: the route `main`, the id of a model, or a flow. */
export type Target = { name: string; model?: string; flow?: string }

export function readTarget(fields: Fields): Target {
  const name = fields.text('model')
  if (name === ROUTE) return { name }
  if (!name.startsWith(FLOW_PREFIX)) {
    if (!MODEL.test(name)) throw fields.wrong('model', 'main, the id of a model, or flow: and the name of a flow')
    return { name, model: name }
  }
  const flow = name.slice(FLOW_PREFIX.length)
  if (!FLOW.pattern.test(flow)) throw fields.wrong('model', 'the name of a flow behind flow:')
  return { name, flow }
}

const MODEL = /^(?! )[^\p{Cc}]{1,256}(?<! )$/u

/** The values of `model` that this server knows. */
export async function listModels(res: Response, { config, flows, model }: DialectDeps): Promise<object> {
  const tenant = tenantOf(res)
  const engine = await config?.settings.engine(tenant)
  const own = engine?.routing.main?.model ?? model
  const published = flows ? await flows.library.list(tenant, { limit: 200 }) : undefined
  const names =
    published?.flows
      .filter(({ published_version: version }) => version !== null)
      .map(({ name }) => FLOW_PREFIX + name) ?? []
  const ids = [ROUTE, ...(own ? [own] : []), ...names]
  return {
    object: 'list',
    data: [...new Set(ids)].map((id) => ({ id, object: 'model', created: 0, owned_by: 'agent-engine' })),
  }
}
