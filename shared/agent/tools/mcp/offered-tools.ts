import type { JsonObject } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import { attempt } from '../attempt.ts'
import type { Tool } from '../port.ts'
import type { DeliveredFiles } from '../workspace/deliver.ts'
import { callTool } from './call.ts'
import type { McpServerConfig } from './config.ts'
import type { McpConnection } from './connection.ts'
import { withDefaults } from './fit-schema.ts'
import type { Instances } from './instances.ts'
import { listTools, type ServerTool } from './list-tools.ts'

export type OfferedToolsOptions = {
  /** The name of a tool in the engine. */
  nameOf: (tool: string) => string
  callTimeoutMs: number
  instances: Instances
  files?: DeliveredFiles | undefined
  /** Called when the server did not know a tool that it has listed. */
  onUnknownTool: () => void
  /** Called with a sentence for tools that are left out, once as long as that stays so. */
  onProblem: (problem: string) => void
}

/** Changes since the last list: tools that are new or different, and the names of those that are gone. */
export type ToolChange = { tools: Tool[]; gone: string[] }

/** The tools of one server as the engine offers them. */
export class OfferedTools {
  readonly #server: McpServerConfig
  readonly #options: OfferedToolsOptions
  /** The JSON of each tool, by its name in the engine. */
  #offered = new Map<string, string>()
  #problems = new Set<string>()
  #instructions: string | undefined

  constructor(server: McpServerConfig, options: OfferedToolsOptions) {
    this.#server = server
    this.#options = options
  }

  get instructions(): string | undefined {
    return this.#instructions
  }

  /** Lists the server's tools. Rejects when it cannot be reached or is too slow; the message is for the operator. */
  async list(connection: McpConnection): Promise<ToolChange> {
    const { tools, problems, instructions } = await listTools(connection)
    this.#instructions = instructions
    const listed = tools.filter(({ name }) => !this.#server.disabledTools?.includes(name))
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
    const server = this.#server
    const { nameOf, callTimeoutMs, instances, files, onUnknownTool } = this.#options
    const name = nameOf(tool.name)
    const remote = { toolName: tool.name, callTimeoutMs, files, onUnknownTool }
    const label = `the tool ${truncate(tool.name, MAX_LABEL_CHARS)} of the MCP server ${truncate(server.name, MAX_LABEL_CHARS)}`
    // The server works in the caller's folder, as the tools for files do.
    const usesFiles = 'command' in server && server.cwd === undefined && instances.scopeOf(server) === 'session'
    return {
      name,
      server: server.name,
      ...(usesFiles && { usesFiles }),
      ...(tool.title !== undefined && { title: tool.title }),
      hints: tool.hints,
      description: tool.description ?? `Calls ${label}.`,
      inputSchema: tool.inputSchema,
      defaultPolicy: 'ask',
      isReadOnly: server.isTrusted && tool.hints.read_only === true,
      // The hints of a trusted server are believed: tools that it calls read-only run in plan mode, and those that it calls idempotent may
      // be called again (D32.9a).
      isIdempotent: server.isTrusted && tool.hints.idempotent === true,
      describe: () => `Call ${label}${tool.title === undefined ? '' : ` (${tool.title})`}.${warningOf(tool.hints)}`,
      run: (input: JsonObject, context) =>
        attempt({ subject: name, signal: context.signal }, () =>
          instances.use(server, context, (connection) =>
            callTool({ connection, ...remote }, withDefaults(tool.ownSchema, input), context),
          ),
        ),
    }
  }
}

/** A warning for the person who is asked: it quotes the server's own hints, which may be wrong. */
function warningOf({ read_only: isReadOnly, destructive: isDestructive }: ServerTool['hints']): string {
  if (isReadOnly === true) return ' The server says that it only reads.'
  return isDestructive === true ? ' The server says that it may destroy or overwrite something.' : ''
}

const MAX_LABEL_CHARS = 100
