import type { Format, Json } from './wire.ts'

/** One part of one message of a conversation. `message` is the index of the message. */
export type HistoryEntry = { message: number; kind: 'user' | 'assistant' | 'call' | 'result'; id: string; text: string }

/** Reads the conversation of a request in any format, without system prompts. */
export function historyOf(format: Format, body: Json): HistoryEntry[] {
  if (format === 'openai-responses' && typeof body['input'] === 'string') {
    return [{ message: 0, kind: 'user', id: '', text: body['input'] }]
  }
  const [list, read] = READERS[format]
  return objects(body[list]).flatMap((item, message) => read(item).map((entry) => ({ ...entry, message })))
}

/** The text of the last message if it is the user's, else empty. */
export const promptOf = (history: HistoryEntry[]): string =>
  history.at(-1)?.kind === 'user' ? lastAskedOf(history) : ''

/** The text of the user's last message, whatever follows it. */
export function lastAskedOf(history: HistoryEntry[]): string {
  const last = history.findLast(({ kind }) => kind === 'user')
  if (!last) return ''
  return history
    .flatMap((entry) => (entry.kind === 'user' && entry.message === last.message ? [entry.text] : []))
    .join('\n')
}

/** The tool results at the end of the conversation, in order. */
export const resultsOf = (history: HistoryEntry[]): HistoryEntry[] =>
  history.slice(history.findLastIndex((entry) => entry.kind !== 'result') + 1)

/** The stop sequences of a request. */
export function stopsOf(body: Json): string[] {
  const generation = objects([body['generationConfig']])[0]
  const stops = body['stop'] ?? body['stop_sequences'] ?? generation?.['stopSequences'] ?? []
  return [stops].flat().filter((stop) => typeof stop === 'string')
}

type Part = Omit<HistoryEntry, 'message'>

const READERS: Record<Format, [list: string, read: (entry: Json) => Part[]]> = {
  'openai-chat': ['messages', readChat],
  'openai-responses': ['input', readItem],
  anthropic: ['messages', readAnthropic],
  ollama: ['messages', readOllama],
  google: ['contents', readGoogle],
}

function readChat(entry: Json): Part[] {
  if (entry['role'] === 'tool') return [part('result', entry['content'], entry['tool_call_id'])]
  return [...spoken(entry), ...objects(entry['tool_calls']).map((call) => part('call', '', call['id']))]
}

/** Results may name their call or only its tool. */
function readOllama(entry: Json): Part[] {
  return readChat({ ...entry, tool_call_id: entry['tool_call_id'] ?? entry['tool_name'] })
}

function readItem(entry: Json): Part[] {
  if (entry['type'] === 'function_call') return [part('call', '', entry['call_id'])]
  if (entry['type'] === 'function_call_output') return [part('result', entry['output'], entry['call_id'])]
  return spoken(entry)
}

function readAnthropic(entry: Json): Part[] {
  if (typeof entry['content'] === 'string') return spoken(entry)
  return objects(entry['content']).flatMap((block) => {
    if (block['type'] === 'tool_use') return [part('call', '', block['id'])]
    if (block['type'] === 'tool_result') return [part('result', block['content'], block['tool_use_id'])]
    return spoken({ role: entry['role'], content: [block] })
  })
}

/** Google pairs calls and results by name when they have no ids. */
function readGoogle({ role, parts }: Json): Part[] {
  return objects(parts).flatMap((each) => {
    const call = objects([each['functionCall']])[0]
    if (call) return [part('call', '', call['id'] ?? call['name'])]
    const result = objects([each['functionResponse']])[0]
    if (result) return [part('result', JSON.stringify(result['response']), result['id'] ?? result['name'])]
    return [part(role === 'model' ? 'assistant' : 'user', each['text'])]
  })
}

function spoken({ role, content }: Json): Part[] {
  if (role !== 'user' && role !== 'assistant') return []
  return textOf(content) === '' ? [] : [part(role, content)]
}

const part = (kind: HistoryEntry['kind'], content: unknown, id?: unknown): Part => ({
  kind,
  id: typeof id === 'string' ? id : '',
  text: textOf(content),
})

/** The text of content that is a string or a list of parts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return objects(content)
    .flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
    .join('\n')
}

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

const objects = (list: unknown): Json[] => (Array.isArray(list) ? list.filter(isJson) : [])
