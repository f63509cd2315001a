import type { Response } from 'express'
import type { ClientTool } from '../../../../shared/agent/tools/client-tools.ts'
import type { RunRequest } from '../../../../shared/cluster/commands/runs.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { escapePointer } from '../../../../shared/kernel/json.ts'
import { ignoredFieldsHeader } from '../../../../shared/platform/api/ignored-fields.ts'
import { budgetProblem } from '../../../../shared/platform/schemas/budget.ts'
import { unusableSchema } from '../../../../shared/platform/schemas/problems.ts'
import type { CheckValue } from '../../bodies/body.ts'
import type { Fields } from '../shared/fields.ts'
import { unsupportedField } from '../shared/messages.ts'
import { inPlaces, type Places } from '../shared/places.ts'

type Choices = Pick<
  RunRequest,
  'response_schema' | 'tool_choice' | 'client_tools' | 'effort' | 'temperature' | 'max_output_tokens' | 'metadata'
>

/** `ignored` are the places of values that no run uses. */
export type ChosenRun = { choices: Choices; places: Places; ignored: readonly string[] }

/** Where an API puts the options of a run. `format` contains the format of the answer, `schema` is the place of its JSON Schema there. */
type Names = { format: Fields | undefined; schema: string; effort: string; tokens: readonly string[] }

const EFFORTS = ['low', 'medium', 'high']

/** Reads the options that a request sets for its run (D41.5, D42.6, D46.1). Throws `invalid_request` for what this server cannot do. */
export async function readChoices(fields: Fields, names: Names, checkValue: CheckValue): Promise<ChosenRun> {
  const tokens = names.tokens.find((name) => fields.has(name)) ?? ''
  const effort = valueAt(fields.value, names.effort) ?? undefined
  const isEffort = EFFORTS.includes(effort as string)
  const found: [keyof Choices, unknown, string][] = [
    ['response_schema', names.format && schemaOf(names.format, names.schema), (names.format?.at ?? '') + names.schema],
    ['tool_choice', toolChoiceOf(fields), '/tool_choice'],
    ['client_tools', ownTools(fields), '/tools'],
    ['effort', isEffort ? effort : undefined, names.effort],
    ['temperature', fields.get('temperature'), '/temperature'],
    ['max_output_tokens', fields.get(tokens), `/${tokens}`],
    ['metadata', fields.get('metadata'), '/metadata'],
  ]
  const given = found.filter(([, value]) => value !== undefined)
  const places: Places = Object.fromEntries(given.map(([name, , at]) => [name, at]))
  const choices: Choices = Object.fromEntries(given)
  await inPlaces(places, () => checkValue('SendMessageRequest', { ...choices, prompt: '-' }, ''))
  // The worker checks it as well, but by then a session may have been created.
  const problem = choices.response_schema && budgetProblem(choices.response_schema)
  if (problem) throw unusableSchema(places['response_schema'] ?? '', problem)
  return { choices, places, ignored: effort === undefined || isEffort ? [] : [names.effort] }
}

/** The JSON Schema of an answer's format; `undefined` for text. */
function schemaOf(format: Fields, at: string): JsonObject | undefined {
  const type = format.text('type')
  if (type === 'text') return undefined
  if (type === 'json_object') return { type: 'object' }
  if (type !== 'json_schema') throw format.wrong('type', 'text, json_object or json_schema')
  return (at.startsWith('/json_schema') ? format.object('json_schema') : format).object('schema').value
}

/** OpenAI's format for a tool choice by name differs from ours. */
function toolChoiceOf(fields: Fields): unknown {
  const choice = fields.get('tool_choice')
  if (typeof choice !== 'object') return choice
  const named = fields.object('tool_choice')
  return { name: (named.has('function') ? named.object('function') : named).text('name') }
}

/** Names the fields that nothing reads, as on every other path (D2.4). */
export function nameIgnored(
  res: Response,
  { value }: Fields,
  of: { known: ReadonlySet<string> } & Partial<ChosenRun>,
): void {
  const unknown = Object.keys(value).filter((name) => !of.known.has(name) && value[name] !== null)
  const ignored = [...unknown.map((name) => `/${escapePointer(name)}`), ...(of.ignored ?? [])]
  if (ignored.length > 0) res.setHeader('X-Ignored-Fields', ignoredFieldsHeader(ignored.slice(0, MAX_NAMED)))
}

const MAX_NAMED = 20

const valueAt = (value: JsonObject, pointer: string): unknown =>
  pointer
    .slice(1)
    .split('/')
    .reduce((each: unknown, key) => (each as JsonObject | null | undefined)?.[key], value)

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
