import type { Schema, TenantEvent } from '../../../../shared/client/api.ts'
import { hrefOf } from '../../base/router.ts'

export type Flow = Schema<'Flow'>
export type ListedFlow = Schema<'ListedFlow'>
export type Definition = Schema<'FlowDefinition'>
export type Revision = Schema<'FlowRevisionList'>['revisions'][number]

export type View = 'edit' | 'run' | 'runs' | 'batches' | 'evaluate' | 'history' | 'memory'

/** The path of a flow in the API, and of its parts. */
export const flowPath = (name: string, part = ''): string => `/flows/${encodeURIComponent(name)}${part}`

/** The address of a view of a flow. */
export const placeOf = (name: string, view?: View): string => hrefOf(flowPath(name, view && `/${view}`))

/** The id of an execution's run contains the same number. */
export const runOf = (traceId: string): string => hrefOf(`/activity/${traceId.replace(/^trace_/, 'run_')}`)

/** Whether an event is about a flow. */
export const isAbout =
  (name: string, kind: 'flow.' | 'flow.changed' | 'flow.ended' = 'flow.') =>
  ({ event, data }: TenantEvent): boolean =>
    event.startsWith(kind) && data['flow'] === name
