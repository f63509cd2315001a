import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import { type FlowDefinition, servedVersion } from '../../../../shared/work/flows/port.ts'
import type { FlowSurface } from '../../routes/flows/flows.ts'

type Library = Pick<FlowSurface['library'], 'list' | 'definitionOf'>

/** A published flow, for formats that describe what can be called. */
export type PublishedFlow = { name: string; description: string; definition: FlowDefinition }
export type PublishedPage = { flows: PublishedFlow[]; nextCursor: string | null }

/** A page of the published flows; fewer than `limit` when some of the page's flows are drafts. Throws `invalid_request` for an invalid cursor. */
export async function listPublished(
  library: Library,
  tenant: TenantId,
  page: { limit: number; cursor?: string | undefined },
): Promise<PublishedPage> {
  const { flows, next_cursor: nextCursor } = await library.list(tenant, page)
  const published = flows.map(async (flow): Promise<PublishedFlow[]> => {
    const version = servedVersion(flow)
    const definition = version === null ? undefined : await library.definitionOf(tenant, { uid: flow.uid, version })
    return definition ? [{ name: flow.name, description: descriptionOf(flow.name, definition), definition }] : []
  })
  return { flows: (await Promise.all(published)).flat(), nextCursor }
}

/** A flow's definition has no description of its own, so those of its schemas are used. */
function descriptionOf(name: string, { input_schema: input, output_schema: output }: FlowDefinition): string {
  const described = input['description'] ?? output['description']
  return typeof described === 'string' ? described : `Runs the flow ${name}.`
}
