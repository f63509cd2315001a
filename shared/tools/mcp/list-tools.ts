import type { Client } from '@modelcontextprotocol/client'
import { withDeadline } from '../../deadline.ts'
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

/**
 * Lists the usable tools of one server, within the time in which it may start. A malformed tool, one with a schema that is too large
 * and one that runs only as a task are left out; `problems` has a sentence for each.
 */
export async function listTools(connection: McpConnection): Promise<{ tools: ServerTool[]; problems: string[] }> {
  const { startTimeoutMs } = connection
  const shared = await connection.client()
  const late = () => new Error(`it did not list its tools within ${startTimeoutMs} ms`)
  const found = await withDeadline(shared.run(listAll), startTimeoutMs, late)
  const tools = new Map<string, ServerTool>()
  const problems: string[] = []
  for (const tool of found) {
    const problem = problemOf(tool)
    if (problem === undefined) tools.set((tool as ServerTool).name, tool as ServerTool)
    else problems.push(`The tool ${shownName(tool)} of the MCP server ${connection.name} is left out: ${problem}.`)
  }
  return { tools: [...tools.values()], problems }
}

async function listAll(client: Client): Promise<unknown[]> {
  if (!client.getServerCapabilities()?.tools) return []
  const found: unknown[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    // Not with the package's own method, which refuses the whole list when one tool of it is malformed.
    const params = cursor === undefined ? {} : { cursor }
    const { tools, nextCursor } = await client.request({ method: 'tools/list', params }, ANY_PAGE)
    found.push(...tools)
    cursor = nextCursor
    if (cursor === undefined) break
  }
  return found
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
  const { name, title, description, inputSchema, execution } = tool
  if (typeof name !== 'string' || name === '') return 'it has no name'
  const isText = (value: unknown) => value === undefined || typeof value === 'string'
  if (!isText(title) || !isText(description)) return 'its title or description is no text'
  if (!isJsonObject(inputSchema) || inputSchema['type'] !== 'object') return 'its input schema is not that of an object'
  if (isJsonObject(execution) && execution['taskSupport'] === 'required')
    return 'it runs only as a task, which is not supported'
  return JSON.stringify(inputSchema).length > MAX_SCHEMA_CHARS ? 'its schema is too large' : undefined
}

const shownName = (tool: unknown): string =>
  isJsonObject(tool) && typeof tool['name'] === 'string' ? truncate(tool['name'], MAX_NAME_CHARS) : 'without a name'
