import type { SeedMessage } from '../../../../shared/cluster/commands/sessions.ts'
import { type AppError, invalidRequest } from '../../../../shared/kernel/errors.ts'
import { isJsonObject, parseJson } from '../../../../shared/kernel/json.ts'
import { Fields } from './fields.ts'
import { type Past, seedOf } from './seed.ts'

/** The new prompt of a list of messages, and what was said before. */
export type Prompted = { prompt: string; system: string | undefined; seed(): SeedMessage[] }

const SYSTEM = ['system', 'developer']

/** Reads messages of OpenAI and of AG-UI, whose names are in camel case: their content is a text, or a list of parts with texts. Calls of a client's own tools are part of the history. */
export function readMessages(messages: readonly Fields[], at: string): Prompted {
  const said = messages.map((message) => ({ role: message.text('role'), message }))
  const first = said.findLastIndex(({ role }) => role !== 'user') + 1
  const [before, asked] = [said.slice(0, first), said.slice(first)]
  const prompt = asked.map(({ message }) => textOf(message)).join('\n\n')
  if (prompt.trim() === '') throw invalidRequest(`${at.slice(1)} must end with a text of the user`, { param: at })
  const system = said.filter(({ role }) => SYSTEM.includes(role)).map(({ message }) => textOf(message))
  const outputs = outputsIn(messages)
  const past = before.flatMap(({ role, message }) => pastOf(role, message, outputs))
  return { prompt, system: system.length > 0 ? system.join('\n\n') : undefined, seed: () => seedOf(past) }
}

const TEXTS = ['text', 'input_text', 'output_text', 'refusal']

function textOf(message: Fields): string {
  const content = message.get('content')
  if (content === undefined || typeof content === 'string') return content ?? ''
  const texts = message.objects('content').map((part) => {
    const type = part.text('type')
    if (TEXTS.includes(type)) return part.text(type === 'refusal' ? 'refusal' : 'text')
    throw part.wrong('type', 'text: this server takes neither images nor files in a prompt')
  })
  return texts.join('\n\n')
}

/** The outputs of a client's own tools, by the ids of their calls. */
const outputsIn = (messages: readonly Fields[]): ReadonlyMap<unknown, string> =>
  new Map(
    messages
      .filter((each) => each.get('role') === 'tool')
      .map((each) => [each.get('tool_call_id') ?? each.get('toolCallId'), textOf(each)]),
  )

function pastOf(role: string, message: Fields, outputs: ReadonlyMap<unknown, string>): Past[] {
  if (role === 'user') return [{ role, text: textOf(message) }]
  if (role !== 'assistant') return []
  const calls = message.objects(message.has('toolCalls') ? 'toolCalls' : 'tool_calls').flatMap((call): Past[] => {
    const output = outputs.get(call.get('id'))
    if (output === undefined) return []
    const made = call.object('function')
    const input = parseJson(made.optionalText('arguments') ?? '{}')
    const toolName = made.text('name')
    return [
      {
        role: 'call',
        call: { id: '', toolName, input: isJsonObject(input) ? input : {}, output, isError: false },
      },
    ]
  })
  return [{ role, text: textOf(message) }, ...calls]
}

/** Refuses what a client asks for that this server cannot do. */
export function refuseUnsupported(fields: Fields, unsupported: Readonly<Record<string, string>>): void {
  for (const [name, reason] of Object.entries(unsupported)) {
    const value = fields.get(name)
    const isSet = typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value !== undefined
    if (isSet) throw unsupportedField(fields, name, reason)
  }
}

export const unsupportedField = (fields: Fields, name: string, reason: string): AppError =>
  invalidRequest(`${name} is not supported: ${reason}`, { param: `${fields.at}/${name}` })

export const OWN_TOOLS = 'the tools are those of this server, which calls them itself; leave it out'
