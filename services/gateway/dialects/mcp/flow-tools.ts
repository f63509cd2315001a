import type { ListToolsResult, Tool } from '@modelcontextprotocol/server'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import type { FlowSurface } from '../../routes/flows/flow-surface.ts'
import { listPublished, type PublishedFlow } from '../shared/published-flows.ts'

/** A page shows this many flows at most. */
const PAGE_FLOWS = 50

/** A page of the flows that run, as tools. Throws `invalid_request` for an invalid cursor. */
export async function listFlowTools(
  library: Pick<FlowSurface['library'], 'list' | 'definitionOf'>,
  tenant: TenantId,
  cursor?: string,
): Promise<ListToolsResult> {
  const { flows, nextCursor } = await listPublished(library, tenant, { limit: PAGE_FLOWS, cursor })
  return { tools: flows.map(toolOf), ...(nextCursor !== null && { nextCursor }) }
}

/** The name of a flow is a tool's name as it is. An input is always an object, which the schema of a flow need not say. */
function toolOf({ name, description, definition }: PublishedFlow): Tool {
  const { input_schema: input, output_schema: outputSchema } = definition
  return { name, description, inputSchema: { ...input, type: 'object' }, outputSchema }
}
