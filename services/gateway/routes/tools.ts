import type { RequestHandler } from 'express'
import type { Tool, ToolBox } from '../../../shared/agent/tools/port.ts'

export type ListedTools = Pick<ToolBox, 'servers'> & {
  readonly tools: readonly Pick<Tool, 'name' | 'description' | 'inputSchema' | 'title' | 'hints'>[]
}

/** Lists the tools of this process. The list may grow: an MCP server may still be starting, and one that is down is tried again. */
export function listTools(toolBox: ListedTools): RequestHandler {
  return (_req, res) => {
    const tools = toolBox.tools.map(({ name, title, description, inputSchema, hints }) => ({
      name,
      ...(title !== undefined && { title }),
      description,
      input_schema: inputSchema,
      ...(hints && { hints }),
    }))
    const servers = (toolBox.servers?.() ?? []).map(({ name, state }) => ({ name, state }))
    res.json({ tools, count: tools.length, ...(servers.length > 0 && { mcp_servers: servers }) })
  }
}
