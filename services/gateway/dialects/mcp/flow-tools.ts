import type { ListToolsResult, Tool } from '@modelcontextprotocol/server'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import type { FlowSummary } from '../../../../shared/work/flows/library.ts'
import { type FlowDefinition, servedVersion } from '../../../../shared/work/flows/port.ts'
import type { FlowSurface } from '../../routes/flows/flow-surface.ts'

type Library = Pick<FlowSurface['library'], 'list' | 'definitionOf'>

/** A page shows this many flows at most, and fewer tools where drafts are among them. */
const PAGE_FLOWS = 50

/** A page of the flows that run, as tools. Throws `invalid_request` for an invalid cursor. */
export async function listFlowTools(library: Library, tenant: TenantId, cursor?: string): Promise<ListToolsResult> {
  const { flows, next_cursor: nextCursor } = await library.list(tenant, { limit: PAGE_FLOWS, cursor })
  const tools = await Promise.all(flows.map((flow) => toolOf(library, tenant, flow)))
  return { tools: tools.flat(), ...(nextCursor !== null && { nextCursor }) }
}

/** None for a flow that does not run, or was deleted meanwhile. */
async function toolOf(library: Library, tenant: TenantId, flow: FlowSummary): Promise<Tool[]> {
  const version = servedVersion(flow)
  if (version === null) return []
  const definition = await library.definitionOf(tenant, { uid: flow.uid, version })
  return definition ? [describe(flow.name, definition)] : []
}

/** The name of a flow is a tool's name as it is. An input is always an object, which the schema of a flow need not say. */
function describe(name: string, { input_schema: input, output_schema: outputSchema }: FlowDefinition): Tool {
  const described = input['description'] ?? outputSchema['description']
  const description = typeof described === 'string' ? described : `Runs the flow ${name}.`
  return { name, description, inputSchema: { ...input, type: 'object' }, outputSchema }
}
