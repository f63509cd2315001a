import type { JsonObject } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import { attempt } from '../attempt.ts'
import type { Tool } from '../port.ts'
import { callTool } from './call.ts'
import type { McpConnection } from './connection.ts'
import { listTools, type ServerTool } from './list-tools.ts'

export type OfferedToolsOptions = {
  /** The name of a tool in the engine. */
  nameOf: (tool: string) => string
  callTimeoutMs: number
  /** The server is believed: tools that it calls read-only run in plan mode, and those that it calls idempotent may be called again (D32.9a). */
  isTrusted: boolean
  /** Called with a sentence for tools that are left out, once as long as that stays so. */
  onProblem: (problem: string) => void
}

/** Changes since the list before: tools that are new or different, and the names of those that are gone. */
export type ToolChange = { tools: Tool[]; gone: string[] }

/** The tools of one server as the engine offers them. */
export class OfferedTools {
  readonly #connection: McpConnection
  readonly #options: OfferedToolsOptions
  /** The JSON of each tool, by its name in the engine. */
  #offered = new Map<string, string>()
  #problems = new Set<string>()

  constructor(connection: McpConnection, options: OfferedToolsOptions) {
    this.#connection = connection
    this.#options = options
  }

  /** Lists the server's tools. Rejects when it cannot be reached or is too slow; the message is for the operator. */
  async list(): Promise<ToolChange> {
    const { tools: listed, problems } = await listTools(this.#connection)
    for (const problem of problems) if (!this.#problems.has(problem)) this.#options.onProblem(problem)
    this.#problems = new Set(problems)
    const before = this.#offered
    this.#offered = new Map(listed.map((tool) => [this.#options.nameOf(tool.name), JSON.stringify(tool)]))
    const isChanged = (tool: ServerTool) => before.get(this.#options.nameOf(tool.name)) !== JSON.stringify(tool)
    return {
      tools: listed.filter(isChanged).map((tool) => this.#toTool(tool)),
      gone: [...before.keys()].filter((name) => !this.#offered.has(name)),
    }
  }

  #toTool(tool: ServerTool): Tool {
    const connection = this.#connection
    const name = this.#options.nameOf(tool.name)
    const remote = { connection, toolName: tool.name, callTimeoutMs: this.#options.callTimeoutMs }
    const label = `the tool ${truncate(tool.name, MAX_LABEL_CHARS)} of the MCP server ${truncate(connection.name, MAX_LABEL_CHARS)}`
    return {
      name,
      server: connection.name,
      description: tool.description ?? `Calls ${label}.`,
      inputSchema: tool.inputSchema,
      defaultPolicy: 'ask',
      isReadOnly: this.#options.isTrusted && tool.isReadOnly,
      isIdempotent: this.#options.isTrusted && tool.isIdempotent,
      describe: () => `Call ${label}.`,
      run: (input: JsonObject, context) =>
        attempt({ subject: name, signal: context.signal }, () => callTool(remote, input, context)),
    }
  }
}

const MAX_LABEL_CHARS = 100
