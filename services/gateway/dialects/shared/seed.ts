import type { SeedMessage } from '../../../../shared/cluster/commands/sessions.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { jsonBytes } from '../../../../shared/kernel/json.ts'
import type { Attachment } from '../../starting/attach.ts'

/** A call of a tool that has ended, as the history of a client shows it. */
export type PastCall = { id: string; toolName: string; input: JsonObject; output: string; isError: boolean }

/** One entry of a client's history, in its order. Texts that follow one another belong together. `id` is that of its message. */
export type Past = { id?: string | undefined } & (
  | { role: 'user' | 'assistant'; text: string; attachments?: Attachment[] }
  | { role: 'call'; call: PastCall }
)

/** The most that `POST /sessions` takes (D23). */
const MAX_MESSAGES = 1_000
const MAX_BYTES = 1_000_000

/**
 * Makes the messages that a new session begins with. Providers require alternating turns: missing messages are filled in, and user
 * messages without an answer are left out. Only the newest part of a history that is too long is used. With `endsWithResults` the model
 * reads the results of the last calls next, so no assistant text is added after them.
 */
export function seedOf(past: readonly Past[], { endsWithResults = false } = {}): SeedMessage[] {
  const turns = turnsOf(past)
  if (endsWithResults) turns.at(-1)?.pop()
  const fits = (messages: SeedMessage[]) =>
    messages.length <= MAX_MESSAGES && jsonBytes(messages.map(withoutFiles)) <= MAX_BYTES
  for (let from = 0; from < turns.length; from += Math.max(1, Math.floor((turns.length - from) / 2))) {
    const messages = turns.slice(from).flat()
    if (fits(messages)) return messages
  }
  return []
}

/** Each turn begins with a message of the user and ends with the text of the assistant. */
function turnsOf(past: readonly Past[]): SeedMessage[][] {
  const turns: { prompt: Asked[]; answer: Past[] }[] = []
  for (const each of past) {
    const last = turns.at(-1)
    if (each.role !== 'user') last?.answer.push(each)
    else if (!last || last.answer.length > 0) turns.push({ prompt: [each], answer: [] })
    else last.prompt.push(each)
  }
  return turns.flatMap(({ prompt, answer }) => {
    const content = joined(prompt.map(({ text }) => text))
    const attachments = prompt.flatMap(({ attachments: files = [] }) => files)
    if ((content === '' && attachments.length === 0) || answer.length === 0) return []
    const said = { role: 'user' as const, content, ...(attachments.length > 0 && { attachments }) }
    return [[named(said, prompt), ...answerOf(answer)]]
  })
}

type Asked = { text: string; id?: string | undefined; attachments?: Attachment[] }

/** A history does not keep the bytes of files. */
const withoutFiles = ({ attachments: _files, ...message }: SeedMessage): SeedMessage => message

/** A message that is merged from several has the id of the last one. */
function named(message: SeedMessage, of: readonly Pick<Past, 'id'>[]): SeedMessage {
  const client = of.findLast(({ id }) => id !== undefined)?.id
  return client === undefined ? message : { ...message, client }
}

function answerOf(answer: readonly Past[]): SeedMessage[] {
  const messages: SeedMessage[] = []
  let texts: string[] = []
  for (const [i, each] of answer.entries()) {
    if (each.role !== 'call') {
      texts.push(each.text)
      continue
    }
    messages.push(...callOf(each.call, { text: joined(texts), id: `call_${i + 1}` }))
    texts = []
  }
  return [...messages, named({ role: 'assistant', content: joined(texts) || NO_TEXT }, answer)]
}

/** A client may use the id of a call twice, so calls get new ids. */
function callOf({ toolName, input, output, isError }: PastCall, { text, id }: { text: string; id: string }) {
  const said = text === '' ? [] : [{ type: 'text' as const, text }]
  return [
    { role: 'assistant' as const, blocks: [...said, { type: 'tool_use' as const, id, tool_name: toolName, input }] },
    {
      role: 'tool' as const,
      blocks: [{ type: 'tool_result' as const, id, tool_name: toolName, output, is_error: isError }],
    },
  ]
}

const NO_TEXT = '(no answer)'

const joined = (texts: readonly string[]): string =>
  texts
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n\n')
