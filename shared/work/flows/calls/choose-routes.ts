import { invalidRequest } from '../../../kernel/errors.ts'
import type { SchemaChecker } from '../../../platform/schemas/port.ts'
import type { TenantConfig } from '../../../tenancy/tenant-config/config.ts'
import { resolveInstance } from '../../../tenancy/tenant-config/credentials.ts'
import type { FlowDefinition, FlowRoute, FlowRunRequest } from '../port.ts'

/** The instances and models of a call; the names are names of instances, never of types. */
export type AdmittedRoutes = { primary: FlowRoute; fallback: FlowRoute | null }

/**
 * Chooses the instances and models of a call (api.md "Named flows" 3 and 6). Throws `invalid_request` for an unknown or ambiguous
 * instance, a missing model, and half a fallback.
 */
export function routesOf(
  { model: ownModel, sub_agents: subAgents }: FlowDefinition,
  request: Omit<FlowRunRequest, 'input'>,
  config: TenantConfig,
): AdmittedRoutes {
  const model = request.model ?? ownModel
  if (model === undefined) {
    const { main } = config.routing
    const example = main ? `, such as ${main.model}, which the route main runs on ${main.instance}` : ''
    throw invalidRequest(`neither the request nor the flow names a model: send model${example}`, { param: '/model' })
  }
  const instance = resolveInstance(config, request.provider_instance, '/provider_instance').name
  for (const [i, { provider_instance: own }] of subAgents.entries()) {
    if (own !== undefined) resolveInstance(config, own, `/sub_agents/${i}/provider_instance`)
  }
  return { primary: { instance, model }, fallback: fallbackOf(request, config) }
}

function fallbackOf(
  { fallback_instance: instance, fallback_model: model }: Omit<FlowRunRequest, 'input'>,
  config: TenantConfig,
): FlowRoute | null {
  if (instance === undefined && model === undefined) return null
  if (instance === undefined || model === undefined) {
    throw invalidRequest('fallback_instance and fallback_model must be given together', {
      param: instance === undefined ? '/fallback_instance' : '/fallback_model',
    })
  }
  return { instance: resolveInstance(config, instance, '/fallback_instance').name, model }
}

/** Throws `invalid_request` that names the first wrong field of the input. */
export async function checkInput(
  { input_schema: schema }: FlowDefinition,
  { input }: Pick<FlowRunRequest, 'input'>,
  checker: Pick<SchemaChecker, 'check'>,
): Promise<void> {
  const [problem] = await checker.check(schema, input)
  if (!problem) return
  throw invalidRequest(`the input does not fit the flow's input_schema: ${problem.message}`, {
    param: `/input${problem.path}`,
  })
}
