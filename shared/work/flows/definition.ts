import { type AppError, invalidRequest, type Problem } from '../../kernel/errors.ts'
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
const INSTANCE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/**
 * Reads a definition from a request's body or a file, and fills in the defaults (api.md "Flow definition"). Fields that it does not
 * know are left out. Throws `invalid_request` with the pointer of the first wrong field, and the problems of all.
 */
export function readDefinition(body: JsonObject): FlowDefinition {
  const { definition, problems } = inspectDefinition(body)
  const [first] = problems
  if (first) throw refusal(first, problems)
  return definition
}

/** The same, with all problems. Wrong fields are left out of the definition, and a wrong schema in it allows everything. */
export function inspectDefinition(body: JsonObject): { definition: FlowDefinition; problems: Problem[] } {
  const reader = new DefinitionReader()
  const definition = reader.read(body)
  const { problems } = reader
  const isTooLong = Buffer.byteLength(JSON.stringify(definition)) > MAX_BYTES
  return { definition, problems: isTooLong ? [...problems, TOO_LONG] : problems }
}

const TOO_LONG: Problem = {
  param: '',
  message: `the definition has more than ${MAX_BYTES} bytes as JSON; shorten its schemas or templates`,
}

const refusal = ({ param, message }: Problem, problems: readonly Problem[]): AppError =>
  invalidRequest(message, { param, ...(problems.length > 1 && { problems }) })

const ANYTHING: JsonObject = { type: 'object', additionalProperties: true }

/** Reads the fields of one definition, and collects the problems in their order. */
class DefinitionReader {
  readonly problems: Problem[] = []

  read(body: JsonObject): FlowDefinition {
    return {
      input_schema: this.#schemaAt(body['input_schema'], '/input_schema'),
      output_schema: this.#schemaAt(body['output_schema'], '/output_schema'),
      ...optional(
        'system_prompt_template',
        this.#templateAt(body['system_prompt_template'], '/system_prompt_template'),
      ),
      ...optional('user_prompt_template', this.#templateAt(body['user_prompt_template'], '/user_prompt_template')),
      tools: this.#toolsAt(body['tools'], '/tools'),
      ...optional('model', this.#nameAt(body['model'], '/model')),
      sub_agents: this.#subAgentsAt(body['sub_agents']),
      evolve: this.#flagAt(body['evolve'], '/evolve'),
    }
  }

  #report(param: string, message: string): undefined {
    this.problems.push({ param, message: `${param.slice(1).replaceAll('/', '.')} ${message}` })
  }

  #subAgentsAt(value: unknown): SubAgentDefinition[] {
    if (value === undefined) return []
    const most = `has more than ${MAX_SUB_AGENTS} sub-agents`
    const list = this.#listAt(value, '/sub_agents', { max: MAX_SUB_AGENTS, wanted: 'a list of sub-agents', most })
    return list.map((each, i) => this.#subAgentAt(each, `/sub_agents/${i}`))
  }

  #subAgentAt(value: unknown, at: string): SubAgentDefinition {
    if (!isJsonObject(value)) {
      this.#report(at, 'must be an object with name, prompt and output_schema')
      return { name: '', prompt: '', output_schema: ANYTHING, tools: [] }
    }
    const { name, prompt } = value
    const isNamed = typeof name === 'string' && AGENT_NAME.test(name)
    if (!isNamed)
      this.#report(`${at}/name`, 'must begin with a letter and consist of up to 64 letters, digits, _ and -')
    if (prompt === undefined) this.#report(`${at}/prompt`, 'is required: it tells the sub-agent its task')
    return {
      name: isNamed ? name : '',
      prompt: this.#templateAt(prompt, `${at}/prompt`) ?? '',
      output_schema: this.#schemaAt(value['output_schema'], `${at}/output_schema`),
      tools: this.#toolsAt(value['tools'], `${at}/tools`),
      ...optional('model', this.#nameAt(value['model'], `${at}/model`)),
      ...optional('provider_instance', this.#instanceAt(value['provider_instance'], `${at}/provider_instance`)),
    }
  }

  #schemaAt(value: unknown, at: string): JsonObject {
    if (isJsonObject(value)) return value
    this.#report(at, 'is required and must be a JSON Schema, as an object')
    return ANYTHING
  }

  #templateAt(value: unknown, at: string): string | undefined {
    if (value === undefined) return undefined
    if (typeof value !== 'string') return this.#report(at, 'must be a text')
    if (countChars(value) > MAX_TEMPLATE)
      return this.#report(at, `has more than ${MAX_TEMPLATE} characters; shorten it`)
    return value
  }

  #toolsAt(value: unknown, at: string): string[] {
    if (value === undefined) return []
    const most = `has more than ${MAX_TOOLS} tools`
    const list = this.#listAt(value, at, { max: MAX_TOOLS, wanted: 'a list of names of tools', most })
    return list.map((tool, i) => this.#nameAt(tool, `${at}/${i}`, { isRequired: true }) ?? '')
  }

  #listAt(value: unknown, at: string, { max, wanted, most }: { max: number; wanted: string; most: string }): unknown[] {
    if (!Array.isArray(value)) this.#report(at, `must be ${wanted}`)
    else if (value.length > max) this.#report(at, most)
    else return value
    return []
  }

  #nameAt(value: unknown, at: string, { isRequired = false } = {}): string | undefined {
    if (value === undefined && !isRequired) return undefined
    if (typeof value === 'string' && value !== '' && countChars(value) <= MAX_NAME) return value
    return this.#report(at, `must be a name of 1 to ${MAX_NAME} characters`)
  }

  #instanceAt(value: unknown, at: string): string | undefined {
    if (value === undefined || (typeof value === 'string' && INSTANCE_NAME.test(value))) return value
    return this.#report(at, 'must be 1 to 64 of the characters A-Z a-z 0-9 . _ - and begin with a letter or digit')
  }

  #flagAt(value: unknown, at: string): boolean {
    if (value !== undefined && typeof value !== 'boolean') this.#report(at, 'must be true or false')
    return value === true
  }
}

const optional = <K extends string>(name: K, value: string | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [field in K]?: string }
