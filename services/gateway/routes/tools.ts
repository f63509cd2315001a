import type { RequestHandler } from 'express'
import type { ToolDefinition } from '../../../shared/providers/port.ts'

/** The tools do not change while the process runs. */
export function listTools(offers: readonly ToolDefinition[]): RequestHandler {
  const tools = offers.map(({ name, description, inputSchema }) => ({ name, description, input_schema: inputSchema }))
  return (_req, res) => {
    res.json({ tools, count: tools.length })
  }
}
