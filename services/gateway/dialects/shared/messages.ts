import type { ListedMessage, SeedMessage } from '../../../../shared/cluster/commands/sessions.ts'
import { type AppError, invalidRequest } from '../../../../shared/kernel/errors.ts'
import { isJsonObject, parseJson } from '../../../../shared/kernel/json.ts'
import type { Attachment } from '../../starting/attach.ts'
import { Fields } from './fields.ts'
import { fileOf, filesIn, pastFilesIn } from './file-parts.ts'
import { type Past, seedOf } from './seed.ts'

/** The new prompt of a list of messages, and what was said before. */
export type Prompted = {
  prompt: string
  attachments: Attachment[]
  system: string | undefined
  seed(): SeedMessage[]
}

/** Where a list has its new message, and the id that the client has given it. */
export type Listed = Pick<ListedMessage, 'id' | 'path' | 'texts'>

const SYSTEM = ['system', 'developer']

/**
 * Reads messages of OpenAI and of AG-UI, whose names are in camel case: their content is a text, or a list of parts with texts. Calls of a client's own tools
 * are part of the history. With `mayEndWithResults` the history may end with their results, and the prompt is empty then.
 */
export function readMessages(messages: readonly Fields[], at: string, { mayEndWithResults = false } = {}): Prompted {
  const said = messages.map((message) => ({ role: message.text('role'), message }))
  const first = said.findLastIndex(({ role }) => role !== 'user') + 1
  const [before, asked] = [said.slice(0, first), said.slice(first)]
  const prompt = asked.map(({ message }) => textOf(message)).join('\n\n')
  const attachments = asked.flatMap(({ message }) => filesIn(message, 'content'))
  const system = said.filter(({ role }) => SYSTEM.includes(role)).map(({ message }) => textOf(message))
  const outputs = outputsIn(messages, textOf)
  const past = before.flatMap(({ role, message }) => pastOf(role, message, { outputs, read: textOf }))
  const endsWithResults = mayEndWithResults && said.at(-1)?.role === 'tool' && past.at(-1)?.role === 'call'
  const common = { prompt, attachments, system: joinedOf(system), seed: () => seedOf(past, { endsWithResults }) }
  if (prompt.trim() === '' && attachments.length === 0 && !endsWithResults)
    throw invalidRequest(`${at.slice(1)} must end with a text of the user`, { param: at })
  return common
}

const joinedOf = (texts: readonly string[]) => (texts.length > 0 ? texts.join('\n\n') : undefined)

/** The last message of a list whose other messages were sent before, with the texts of the user right before it. */
export type NewMessage = Prompted & { listed: Listed; unanswered: string[] }

/**
 * Reads the new message of a list of AG-UI, which the client sends whole each time. Only the new one is checked: the list still contains
 * messages that were refused or had no answer.
 */
export function readNewMessage(messages: readonly Fields[], at: string): NewMessage {
  const said = messages.map((message) => ({ role: message.text('role'), message }))
  const last = said.at(-1)
  const prompt = last?.role === 'user' ? textOf(last.message) : ''
  const attachments = last?.role === 'user' ? filesIn(last.message, 'content') : []
  if (prompt.trim() === '' && attachments.length === 0)
    throw invalidRequest(`${at.slice(1)} must end with a text of the user`, { param: at })
  const first = said.findLastIndex(({ role }) => role !== 'user') + 1
  const outputs = outputsIn(messages, (message) => textsOf(message))
  const system = said.filter(({ role }) => SYSTEM.includes(role)).map(({ message }) => textsOf(message))
  return {
    ...{ prompt, attachments },
    system: joinedOf(system),
    listed: placeInList(messages, { isList: true }),
    unanswered: said.slice(first, -1).flatMap(({ message }) => (isTextAlone(message) ? [textsOf(message)] : [])),
    seed: () =>
      seedOf(said.slice(0, first).flatMap(({ role, message }) => pastOf(role, message, { outputs, read: textsOf }))),
  }
}

/** The newest ids of a list, up to this many, are enough to find its place. */
const MAX_IDS = 200
const MAX_ID_CHARS = 256

/** Finds the place of the last message of a list by the ids before it. Without ids, or with only one message, the place is undefined. */
export function placeInList(messages: readonly Fields[], { isList }: { isList: boolean }): Listed {
  const ids = messages.map((message) => message.get('id')).map((id) => (isId(id) ? (runOf(id) ?? id) : undefined))
  const id = ids.at(-1)
  const path = ids.slice(0, -1).filter((each) => each !== undefined)
  const namesPlace = isList && (path.length > 0 || (messages.length === 1 && id !== undefined))
  return {
    ...(id !== undefined && { id }),
    ...(namesPlace && { path: path.slice(-MAX_IDS), texts: unansweredIn(messages.slice(0, -1)) }),
  }
}

/** The texts of the user after the last answer, by the ids of their messages. */
function unansweredIn(messages: readonly Fields[]): Record<string, string> {
  const first = messages.findLastIndex((message) => message.get('role') !== 'user') + 1
  return Object.fromEntries(
    messages.slice(first).flatMap((message) => {
      const id = message.get('id')
      return isId(id) ? [[id, textsOf(message, message.has('parts') ? 'parts' : 'content').trim()]] : []
    }),
  )
}

const isId = (id: unknown): id is string => typeof id === 'string' && id !== '' && id.length <= MAX_ID_CHARS

/** The messages of one run have several ids in AG-UI. */
const runOf = (id: string): string | undefined => /^(run_[0-9a-f]{32})-[\d-]+$/.exec(id)?.[1]

/** Whether this server would have taken the message. */
function isTextAlone(message: Fields): boolean {
  const content = message.get('content')
  return !Array.isArray(content) || content.every((part: unknown) => isJsonObject(part) && part['type'] === 'text')
}

/** The texts of a message, without its other parts. */
function textsOf(message: Fields, name = 'content'): string {
  const content = message.get(name)
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  const texts = content.map((part: unknown) => (isJsonObject(part) && part['type'] === 'text' ? part['text'] : ''))
  return texts.filter((text) => typeof text === 'string' && text !== '').join('\n\n')
}

const TEXTS = ['text', 'input_text', 'output_text', 'refusal']

/** The texts of a message's content, or of another field with the same format. */
export function textOf(message: Fields, name = 'content'): string {
  const content = message.get(name)
  if (content === undefined || typeof content === 'string') return content ?? ''
  const texts = message.objects(name).map((part) => {
    const type = part.text('type')
    if (TEXTS.includes(type)) return part.text(type === 'refusal' ? 'refusal' : 'text')
    if (message.get('role') === 'user' && fileOf(part)) return ''
    throw part.wrong('type', 'text, or the type of an image or a file in a message of the user')
  })
  return texts.filter((text) => text !== '').join('\n\n')
}

/** The outputs of a client's own tools, by the ids of their calls. */
const outputsIn = (messages: readonly Fields[], read: Reading['read']): Reading['outputs'] =>
  new Map(
    messages
      .filter((each) => each.get('role') === 'tool')
      .map((each) => [each.get('tool_call_id') ?? each.get('toolCallId'), read(each)]),
  )

type Reading = { outputs: ReadonlyMap<unknown, string>; read(message: Fields): string }

function pastOf(role: string, message: Fields, { outputs, read }: Reading): Past[] {
  const { id } = placeInList([message], { isList: false })
  if (role === 'user') return [{ id, role, text: read(message), attachments: pastFilesIn(message, 'content') }]
  if (role !== 'assistant') return []
  const calls = message.objects(message.has('toolCalls') ? 'toolCalls' : 'tool_calls').flatMap((call): Past[] => {
    const output = outputs.get(call.get('id'))
    if (output === undefined) return []
    const made = call.object('function')
    const input = parseJson(made.optionalText('arguments') ?? '{}')
    const toolName = made.text('name')
    return [
      {
        id,
        role: 'call',
        call: { id: '', toolName, input: isJsonObject(input) ? input : {}, output, isError: false },
      },
    ]
  })
  return [{ id, role, text: read(message) }, ...calls]
}

/** Refuses fields that ask for something this server cannot do. */
export function refuseUnsupported(fields: Fields, unsupported: Readonly<Record<string, string>>): void {
  for (const [name, reason] of Object.entries(unsupported)) {
    const value = fields.get(name)
    const isSet = typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value !== undefined
    if (isSet) throw unsupportedField(fields, name, reason)
  }
}

export const unsupportedField = (fields: Fields, name: string, reason: string): AppError =>
  invalidRequest(`${name} is not supported: ${reason}`, { param: `${fields.at}/${name}` })
