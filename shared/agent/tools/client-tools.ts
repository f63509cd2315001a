import { AppError } from '../../kernel/errors.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { SchemaChecker } from '../../platform/schemas/port.ts'
import { sentenceOf } from '../../platform/schemas/problems.ts'
import { fail, type Tool, type ToolBox } from './port.ts'
import { MAX_TOOLS } from './usable-tools.ts'

/** A tool of the caller: the model calls it, and the caller's program executes the call (D45). */
export type ClientTool = ApiType<'ClientTool'>

/** The most characters of one request's tools as JSON, because a session keeps them. */
export const MAX_CLIENT_TOOLS_CHARS = 262_144

/** The tools of the server, followed by those of the client. If both have a name, the client's tool is used. */
export function withClientTools(toolBox: ToolBox, given: readonly ClientTool[], schemas: SchemaChecker): ToolBox {
  const own = new Map(given.map((tool) => [tool.name, toolOf(tool)]))
  const isOther = ({ name }: Tool) => !own.has(name)
  return {
    get tools() {
      return [...toolBox.tools.filter(isOther).slice(0, MAX_TOOLS - own.size), ...own.values()]
    },
    ready: toolBox.ready,
    servers: () => toolBox.servers?.() ?? [],
    find: (name) => own.get(name) ?? toolBox.find(name),
    policyOf: (name, ...call) => (own.has(name) ? 'client' : toolBox.policyOf(name, ...call)),
    async problemWith(name, input) {
      const tool = own.get(name)
      if (!tool) return toolBox.problemWith(name, input)
      const problems = await schemas.check(tool.inputSchema, input).catch(cannotCheck)
      return problems.length > 0 ? `The input of ${name} is wrong: ${sentenceOf(problems)}.` : undefined
    },
  }
}

function toolOf({ name, description = '', input_schema: inputSchema = { type: 'object' } }: ClientTool): Tool {
  const run = async () => fail(`${name} is called by the client of this run.`)
  return { name, description, inputSchema, defaultPolicy: 'client', describe: () => `Call ${name}.`, run }
}

function cannotCheck(cause: unknown) {
  if (!(cause instanceof AppError)) throw cause
  return [{ path: '', message: 'cannot be checked now, try again later' }]
}
