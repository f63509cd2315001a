import type { components, paths } from '../platform/api/openapi.d.ts'

/** The paths of the API with their parameters, bodies and answers, as `openapi.yaml` describes them. */
export type Paths = paths

/** The type that a schema of `openapi.yaml` describes. Its fields have the names of the wire format. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name]

/** An event of an agent's run. `event` tells which `data` it has. */
export type RunEvent = Schema<'EventFrame'>

/** An event of `GET /events`. `data` holds ids and states; `reset` says that some events are missing: read again what you show. */
export type TenantEvent = { id: string; event: TenantEventName | 'reset'; data: Record<string, unknown> }

export type TenantEventName =
  | 'permission.requested'
  | 'permission.resolved'
  | 'tool_call.requested'
  | 'tool_call.resolved'
  | 'run.started'
  | 'run.waiting'
  | 'run.ended'
  | 'plan.queued'
  | 'plan.step'
  | 'plan.ended'
  | 'flow.ended'
  | 'batch.ended'
  | 'flow.changed'
  | 'config.changed'
  | 'budget.threshold'
