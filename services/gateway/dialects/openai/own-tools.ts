import type { ClientTool } from '../../../../shared/agent/tools/client-tools.ts'
import type { Fields } from '../shared/fields.ts'
import { unsupportedField } from '../shared/messages.ts'

/**
 * The client's own tools of a request (D46.1). In chat completions their fields are in `function`. Throws `invalid_request` for tools of other types,
 * which this server does not have; those of the server itself, as its own answers show them, are left out.
 */
export function ownTools(fields: Fields): ClientTool[] | undefined {
  const own = fields.objects('tools').filter((tool) => !isOfServer(tool))
  if (own.length === 0) return undefined
  return own.map((tool) => {
    if (tool.get('type') !== 'function')
      throw unsupportedField(fields, 'tools', 'this server has its own tools, and takes functions of yours beside them')
    const made = tool.has('function') ? tool.object('function') : tool
    const description = made.optionalText('description')
    return {
      name: made.text('name'),
      ...(description !== undefined && { description }),
      ...(made.has('parameters') && { input_schema: made.object('parameters').value }),
    }
  })
}

const isOfServer = (tool: Fields): boolean => tool.get('type') === 'mcp' && tool.get('server_label') === 'agent-engine'
