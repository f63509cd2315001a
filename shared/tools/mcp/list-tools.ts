import type { JsonObject } from '../../events.ts'
import { isJsonObject } from '../../json.ts'
import { truncate } from '../../text.ts'
import type { McpConnection } from './connection.ts'

/** A tool as its server describes it. */
export type ServerTool = {
  name: string
  title?: string
  description?: string
  inputSchema: JsonObject
  annotations?: unknown
}

type Page = { tools: readonly unknown[]; nextCursor: string | undefined }

const MAX_PAGES = 64
const MAX_NAME_CHARS = 100
const MAX_SCHEMA_CHARS = 64 * 1024

/** Lists the usable tools of one server. A malformed tool, or one with a schema that is too large, is reported and left out by itself. */
export async function listTools(
  connection: McpConnection,
  onProblem: (problem: string) => void,
): Promise<readonly ServerTool[]> {
  const client = await connection.client()
  if (!client.getServerCapabilities()?.tools) return []
  const tools = new Map<string, ServerTool>()
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    // Not with the package's own method, which refuses the whole list when one tool of it is malformed.
    const params = cursor === undefined ? {} : { cursor }
    const { tools: found, nextCursor } = await client.request({ method: 'tools/list', params }, ANY_PAGE)
    for (const tool of found) {
      const problem = problemOf(tool)
      if (problem !== undefined)
        onProblem(`The tool ${shownName(tool)} of the MCP server ${connection.name} is left out: ${problem}.`)
      else tools.set((tool as ServerTool).name, tool as ServerTool)
    }
    cursor = nextCursor
    if (cursor === undefined) break
  }
  return [...tools.values()]
}

/** The form that the package asks for: accepts every result, and keeps what has the form of a page. */
const ANY_PAGE = {
  '~standard': {
    version: 1,
    vendor: 'agent-engine',
    types: undefined as { input: unknown; output: Page } | undefined,
    validate: (result: unknown): { value: Page } => {
      const { tools, nextCursor } = isJsonObject(result) ? result : {}
      return {
        value: {
          tools: Array.isArray(tools) ? tools : [],
          nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
        },
      }
    },
  },
} as const

function problemOf(tool: unknown): string | undefined {
  if (!isJsonObject(tool)) return 'it is no object'
  const { name, title, description, inputSchema } = tool
  if (typeof name !== 'string' || name === '') return 'it has no name'
  const isText = (value: unknown) => value === undefined || typeof value === 'string'
  if (!isText(title) || !isText(description)) return 'its title or description is no text'
  if (!isJsonObject(inputSchema) || inputSchema['type'] !== 'object') return 'its input schema is not that of an object'
  return JSON.stringify(inputSchema).length > MAX_SCHEMA_CHARS ? 'its schema is too large' : undefined
}

const shownName = (tool: unknown): string =>
  isJsonObject(tool) && typeof tool['name'] === 'string' ? truncate(tool['name'], MAX_NAME_CHARS) : 'without a name'
