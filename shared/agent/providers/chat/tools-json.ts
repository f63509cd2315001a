import type { JsonObject } from '../../../kernel/events.ts'
import type { ToolDefinition } from '../port.ts'
import { perToolList } from '../tool-list.ts'
import { toolParameters } from '../tool-schema.ts'

/** Encodes a request with its tools as JSON in UTF-8. The tools are the largest part of most requests, and are encoded once per list. */
export function withTools(tools: readonly ToolDefinition[], fields: JsonObject): Uint8Array {
  const json = JSON.stringify(fields)
  if (tools.length === 0) return Buffer.from(json)
  return Buffer.concat([Buffer.from(json.slice(0, -1)), toolsField(tools)])
}

/** The last field of the request, with the bracket that ends it. */
const toolsField = perToolList((tools) => Buffer.from(`,"tools":[${tools.map(toolJson).join(',')}]}`))

const known = new WeakMap<ToolDefinition, string>()

/** Also cached for each tool, because every sub-agent has its own list. */
function toolJson(tool: ToolDefinition): string {
  const json = known.get(tool) ?? toJson(tool)
  known.set(tool, json)
  return json
}

const toJson = ({ name, description, inputSchema }: ToolDefinition): string =>
  JSON.stringify({ type: 'function', function: { name, description, parameters: toolParameters(inputSchema) } })
