import type { Models, Route } from '../../agent/engine/resources.ts'
import { AppError } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Meter } from '../../tenancy/limits/meter.ts'

/** The server's own models. A cluster may have no such models (D1.4). */
export type ServerModels = Pick<Models, 'priceOf' | 'windowOf'> & {
  primary: Route['primary'] | undefined
  fallback: Route['fallback']
  /** The model id, at the same provider, for sub-agents and summaries; if unset, they use the model of the run (SMALL_MODEL). */
  smallModel?: string | undefined
}

export type RunPurpose = 'main' | 'plan'

/** Chooses the models that a tenant's runs call. */
export interface ModelSource {
  /** Reads the tenant's routes; `undefined` when this process has them already. Rejects with `unavailable` when the routes cannot be read. */
  load(tenant: TenantId): Promise<void> | undefined
  /**
   * The models of a run whose tenant is loaded; `model` replaces the main model's id. A step of a plan uses the route `plan` if there
   * is one. Throws `unavailable` when there is no model.
   */
  modelsFor(tenant: TenantId, model: string | undefined, purpose?: RunPurpose): Models
}

/** The server's models, which all tenants use. */
export function createServerModels({ primary, fallback, smallModel, ...facts }: ServerModels): ModelSource {
  return {
    load: () => undefined,
    modelsFor(_tenant, model) {
      if (!primary) throw noModel('no model is configured for this run: set MODEL and MODEL_PROVIDER')
      const route = withModel({ primary, fallback }, model)
      const small = withModel(route, smallModel)
      return { ...facts, main: () => route, subAgents: () => small, summaries: () => small }
    },
  }
}

/** The route with another id for its main model. This model is then called first. */
export const withModel = (route: Route, model: string | undefined): Route =>
  model === undefined ? route : { ...route, strategy: 'order', primary: { ...route.primary, model, lacks: undefined } }

const NO_MODEL_RETRY_SECS = 30

export const noModel = (message: string) =>
  new AppError('unavailable', message, { retryAfterSecs: NO_MODEL_RETRY_SECS })

/** The same models, but every call is counted for its tenant, and refused once the tenant's budget is used up. */
export const meterModels = (source: ModelSource, meter: Meter): ModelSource => ({
  load: (tenant) => source.load(tenant),
  modelsFor: (tenant, ...choice) => meter.models(tenant, source.modelsFor(tenant, ...choice)),
})
