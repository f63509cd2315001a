import type { Request, Response } from 'express'
import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { StartedFlow } from '../../../../shared/work/flows/calls/calls.ts'
import type { Flow } from '../../../../shared/work/flows/port.ts'
import { leaving } from '../../client-gone.ts'
import { assertAdmitted } from '../../middleware/admission.ts'
import { subjectOf, tenantOf } from '../../middleware/auth.ts'
import { idempotencyKeyOf, turnOf } from '../../params.ts'
import { required } from '../../routes/requires.ts'
import type { DialectDeps } from '../dialect.ts'

/** `key` is the same for a request that is sent again; without it the request's Idempotency-Key is used. */
type FlowStart = { flow: Pick<Flow, 'name' | 'definition'>; input: JsonObject; key?: string | undefined }

/** The published version of a flow. Throws `not_found`. */
export const publishedFlow = ({ flows }: Pick<DialectDeps, 'flows'>, res: Response, name: string) =>
  required('flows', flows).library.published(tenantOf(res), name)

/**
 * Starts the run of a published flow for a format without instances: on the tenant's own route for prompts. Throws what
 * `POST /flows/{name}/run` throws, and `invalid_request` without such a route.
 */
export async function startFlow(
  { config, flows }: Pick<DialectDeps, 'config' | 'flows'>,
  { req, res }: { req: Request; res: Response },
  { flow, input, key }: FlowStart,
): Promise<StartedFlow> {
  assertAdmitted(res)
  const { calls } = required('config', required('flows', flows).execution)
  const tenant = tenantOf(res)
  const { main } = (await required('config', config).settings.engine(tenant)).routing
  if (!main) throw noRoute()
  const turn = turnOf(req)
  const request = {
    ...{ input, ...turn },
    provider_instance: main.instance,
    ...(flow.definition.model === undefined && { model: main.model }),
  }
  const left = turn.wait_secs !== undefined && { left: leaving(res) }
  const idempotencyKey = key ?? idempotencyKeyOf(req)
  return calls.start(tenant, flow.name, { request, subject: subjectOf(res), idempotencyKey, ...left })
}

const noRoute = () =>
  invalidRequest('flows run on the instance of the route main: set it with PUT /config/engine', { param: '/model' })
