import type { RequestHandler } from 'express'
import type { ToolDefinition } from '../../../shared/agent/providers/port.ts'

/** Lists the tools of this process. The list may grow: an MCP server that is down at the start is tried again. */
export function listTools(definitions: readonly ToolDefinition[]): RequestHandler {
  return (_req, res) => {
    const tools = definitions.map(({ name, description, inputSchema }) => ({
      name,
      description,
      input_schema: inputSchema,
    }))
    res.json({ tools, count: tools.length })
  }
}
