import { type AppError, invalidRequest } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject } from '../../kernel/json.ts'
import { countChars } from '../../kernel/text.ts'
import type { FlowDefinition, SubAgentDefinition } from './port.ts'

export const MAX_SUB_AGENTS = 8

const MAX_BYTES = 1_048_576
const MAX_TEMPLATE = 100_000
const MAX_TOOLS = 128
const MAX_NAME = 256
const AGENT_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

/**
 * Reads a definition from a request's body or a file, and fills in the defaults (api.md "Flow definition"). Fields that it does not
 * know are left out. Throws `invalid_request` with the pointer of the first wrong field.
 */
export function readDefinition(body: JsonObject): FlowDefinition {
  const definition: FlowDefinition = {
    input_schema: schemaAt(body['input_schema'], '/input_schema'),
    output_schema: schemaAt(body['output_schema'], '/output_schema'),
    ...optional('system_prompt_template', templateAt(body['system_prompt_template'], '/system_prompt_template')),
    ...optional('user_prompt_template', templateAt(body['user_prompt_template'], '/user_prompt_template')),
    tools: toolsAt(body['tools'], '/tools'),
    ...optional('model', nameAt(body['model'], '/model')),
    sub_agents: subAgentsAt(body['sub_agents']),
    evolve: flagAt(body['evolve'], '/evolve'),
  }
  const text = JSON.stringify(definition)
  if (Buffer.byteLength(text) > MAX_BYTES)
    throw refusal('', `the definition has more than ${MAX_BYTES} bytes as JSON; shorten its schemas or templates`)
  return definition
}

function subAgentsAt(value: unknown): SubAgentDefinition[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw refusal('/sub_agents', 'must be a list of sub-agents')
  if (value.length > MAX_SUB_AGENTS) throw refusal('/sub_agents', `has more than ${MAX_SUB_AGENTS} sub-agents`)
  return value.map((each: unknown, i) => subAgentAt(each, `/sub_agents/${i}`))
}

function subAgentAt(value: unknown, at: string): SubAgentDefinition {
  if (!isJsonObject(value)) throw refusal(at, 'must be an object with name, prompt and output_schema')
  const { name } = value
  if (typeof name !== 'string' || !AGENT_NAME.test(name))
    throw refusal(`${at}/name`, 'must begin with a letter and consist of up to 64 letters, digits, _ and -')
  const prompt = templateAt(value['prompt'], `${at}/prompt`)
  if (prompt === undefined) throw refusal(`${at}/prompt`, 'is required: it tells the sub-agent its task')
  return {
    name,
    prompt,
    output_schema: schemaAt(value['output_schema'], `${at}/output_schema`),
    tools: toolsAt(value['tools'], `${at}/tools`),
    ...optional('model', nameAt(value['model'], `${at}/model`)),
    ...optional('provider_instance', nameAt(value['provider_instance'], `${at}/provider_instance`)),
  }
}

function schemaAt(value: unknown, at: string): JsonObject {
  if (isJsonObject(value)) return value
  throw refusal(at, 'is required and must be a JSON Schema, as an object')
}

function templateAt(value: unknown, at: string): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string') throw refusal(at, 'must be a text')
  if (countChars(value) > MAX_TEMPLATE) throw refusal(at, `has more than ${MAX_TEMPLATE} characters; shorten it`)
  return value
}

function toolsAt(value: unknown, at: string): string[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw refusal(at, 'must be a list of names of tools')
  if (value.length > MAX_TOOLS) throw refusal(at, `has more than ${MAX_TOOLS} tools`)
  return value.map((tool: unknown, i) => nameAt(tool, `${at}/${i}`) ?? '')
}

function nameAt(value: unknown, at: string): string | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'string' && value !== '' && countChars(value) <= MAX_NAME) return value
  throw refusal(at, `must be a name of 1 to ${MAX_NAME} characters`)
}

function flagAt(value: unknown, at: string): boolean {
  if (value === undefined) return false
  if (typeof value !== 'boolean') throw refusal(at, 'must be true or false')
  return value
}

const optional = <K extends string>(name: K, value: string | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [field in K]?: string }

const refusal = (param: string, message: string): AppError =>
  invalidRequest(param === '' ? message : `${param.slice(1).replaceAll('/', '.')} ${message}`, { param })
