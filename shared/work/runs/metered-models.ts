import type { Meter } from '../../tenancy/limits/meter.ts'
import type { ModelSource } from './models.ts'

/** The same models, with every call counted for its tenant and refused above its budget. */
export const meterModels = (source: ModelSource, meter: Meter): ModelSource => ({
  load: (tenant) => source.load(tenant),
  modelsFor: (tenant, ...choice) => meter.models(tenant, source.modelsFor(tenant, ...choice)),
})
