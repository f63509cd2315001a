import type { Failure } from './script.ts'
import type { Format, Json } from './wire.ts'

type Call = { id: string }

/** Returns the error with which a provider refuses a request that it does not take: its tools, its tool call ids or its roles. */
export function checkRequest(format: Format, body: Json, model: string): Failure | undefined {
  const problem = toolsProblem(format, body) ?? PROBLEMS[format]?.(body, model)
  return problem === undefined ? undefined : { status: 400, message: problem }
}

const PROBLEMS: Partial<Record<Format, (body: Json, model: string) => string | undefined>> = {
  'openai-chat': (body, model) => idsProblem(chatCalls(body), idPatternOf(model)) ?? rolesProblem(body, model),
  ollama: (body) => ollamaProblem(body),
  'openai-responses': (body) => idsProblem(responseCalls(body), /^.{1,64}$/),
  anthropic: (body) => idsProblem(anthropicCalls(body), /^[a-zA-Z0-9_-]+$/) ?? blankProblem(body),
}

const MAX_TOOLS = 128

function toolsProblem(format: Format, body: Json): string | undefined {
  const tools =
    format === 'google' ? objects(objects(body['tools'])[0]?.['functionDeclarations']) : objects(body['tools'])
  if (tools.length > MAX_TOOLS)
    return `Invalid 'tools': array too long. Expected an array with maximum length ${MAX_TOOLS}.`
  for (const tool of tools) {
    const own = objects([tool['function']])[0] ?? tool
    const schema = objects([own['parameters'] ?? own['input_schema']])[0]
    if (schema && !isPlainObject(schema)) {
      return `Invalid schema for function '${String(own['name'])}': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.`
    }
  }
  return undefined
}

const isPlainObject = (schema: Json): boolean =>
  String(schema['type']).toLowerCase() === 'object' &&
  !['oneOf', 'anyOf', 'allOf', 'enum', 'not', '$ref'].some((keyword) => keyword in schema)

/** Ollama's server is strict about types: the arguments of a call are an object, and content is text. */
function ollamaProblem(body: Json): string | undefined {
  for (const { content, tool_calls, role, tool_name } of objects(body['messages'])) {
    if (typeof content !== 'string')
      return 'json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string'
    const inputs = objects(tool_calls).map((call) => objects([call['function']])[0]?.['arguments'])
    if (inputs.some((input) => typeof input !== 'object')) {
      return 'json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments'
    }
    if (role === 'tool' && typeof tool_name !== 'string') return 'a tool message needs tool_name'
  }
  return undefined
}

function idsProblem(calls: Call[], pattern: RegExp): string | undefined {
  const ids = calls.map(({ id }) => id)
  const bad = ids.find((id) => !pattern.test(id))
  if (bad !== undefined) return `Tool call id was ${bad} but must match ${pattern.source}.`
  const twice = ids.find((id, index) => ids.indexOf(id) < index)
  return twice === undefined ? undefined : `tool_use ids must be unique: ${twice}`
}

/** Mistral's servers, and vLLM with Mistral's tokenizer, take these ids only. */
const idPatternOf = (model: string) => (/mistral/.test(model) ? /^[a-zA-Z0-9]{9}$/ : /^.{1,40}$/)

/** The templates of Mistral's and Google's open models refuse two neighbours of one role; Mistral's also a user behind a tool. */
function rolesProblem(body: Json, model: string): string | undefined {
  if (!/mistral|gemma/.test(model)) return undefined
  const roles = objects(body['messages']).map(({ role }) => String(role))
  for (const [index, role] of roles.entries()) {
    const before = roles[index - 1]
    if (role !== 'tool' && role === before) {
      return 'Conversation roles must alternate user/assistant/user/assistant/... after the optional system message'
    }
    if (/mistral/.test(model) && role === 'user' && before === 'tool') return "Unexpected role 'user' after role 'tool'"
  }
  return undefined
}

function blankProblem(body: Json): string | undefined {
  const blocks = objects(body['messages']).flatMap(({ content }) => objects(content))
  const isBlank = ({ type, text }: Json) => type === 'text' && typeof text === 'string' && text.trim() === ''
  return blocks.some(isBlank) ? 'messages: text content blocks must contain non-whitespace text' : undefined
}

const chatCalls = (body: Json) =>
  objects(body['messages'])
    .flatMap(({ tool_calls }) => objects(tool_calls))
    .map(idOf)

const responseCalls = (body: Json) =>
  objects(body['input'])
    .filter(({ type }) => type === 'function_call')
    .map(({ call_id }) => ({ id: String(call_id) }))

const anthropicCalls = (body: Json) =>
  objects(body['messages'])
    .flatMap(({ content }) => objects(content))
    .filter(({ type }) => type === 'tool_use')
    .map(idOf)

const idOf = ({ id }: Json): Call => ({ id: String(id) })

const objects = (list: unknown): Json[] =>
  Array.isArray(list) ? list.filter((each): each is Json => typeof each === 'object' && each !== null) : []
