import type { RequestHandler } from 'express'
import type { ToolDefinition } from '../../../shared/providers/port.ts'

/** Lists the tools of this process. They do not change while it runs. */
export function listTools(definitions: readonly ToolDefinition[]): RequestHandler {
  const tools = definitions.map(({ name, description, inputSchema }) => ({
    name,
    description,
    input_schema: inputSchema,
  }))
  return (_req, res) => {
    res.json({ tools, count: tools.length })
  }
}
