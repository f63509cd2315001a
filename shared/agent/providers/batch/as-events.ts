import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import type { BatchCall } from './port.ts'

/** How a vendor would stream a complete answer, because the adapters read only streams. Selected by the end of the call's path. */
const STREAMS: [path: RegExp, events: (answer: JsonObject) => JsonObject[]][] = [
  [/\/chat\/completions$/, ofChat],
  [/\/responses$/, ofResponses],
  [/\/messages$/, ofMessages],
  [/:generateContent$/, (answer) => [answer]],
]

/** Converts the answer to a call into the server-sent events that the live call would have got. */
export function asEvents(path: string, answer: JsonObject): string {
  const [, eventsOf = () => []] = STREAMS.find(([pattern]) => pattern.test(path)) ?? []
  const frames = eventsOf(answer).map((event) => {
    const name = typeof event['type'] === 'string' ? `event: ${event['type']}\n` : ''
    return `${name}data: ${JSON.stringify(event)}\n\n`
  })
  return `${frames.join('')}${path.endsWith('/chat/completions') ? 'data: [DONE]\n\n' : ''}`
}

/** The call without the fields for a stream or a service tier, which batches do not accept. */
export function asBatched(url: string, base: string, body: JsonObject): Pick<BatchCall, 'path' | 'body'> {
  const { stream: _stream, stream_options: _options, service_tier: _tier, ...rest } = body
  const path = new URL(url).pathname.slice(new URL(base).pathname.replace(/\/$/, '').length)
  return { path: path.replace(/:streamGenerateContent$/, ':generateContent'), body: rest }
}

const objectsIn = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : [])

function ofChat({ choices, usage, ...rest }: JsonObject): JsonObject[] {
  const chunk = { ...rest, object: 'chat.completion.chunk' }
  const said = objectsIn(choices).flatMap(({ index, message, finish_reason }) => {
    const { tool_calls: calls, ...delta } = isJsonObject(message) ? message : {}
    const numbered = objectsIn(calls).map((call, at) => ({ index: at, ...call }))
    const whole = { ...delta, ...(numbered.length > 0 && { tool_calls: numbered }) }
    return [
      { ...chunk, choices: [{ index, delta: whole, finish_reason: null }] },
      { ...chunk, choices: [{ index, delta: {}, finish_reason }] },
    ]
  })
  return [...said, { ...chunk, choices: [], usage }]
}

function ofMessages({ content, stop_reason, stop_sequence, usage, ...message }: JsonObject): JsonObject[] {
  const blocks = objectsIn(content).flatMap((block, index) => {
    const { empty, deltas } = blockOf(block)
    return [
      { type: 'content_block_start', index, content_block: empty },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]
  })
  return [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null, stop_sequence: null, usage } },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage },
    { type: 'message_stop' },
  ]
}

function blockOf(block: JsonObject): { empty: JsonObject; deltas: JsonObject[] } {
  const { type, text, thinking, signature, input } = block
  if (type === 'text') return { empty: { type, text: '' }, deltas: [{ type: 'text_delta', text }] }
  if (type === 'tool_use')
    return {
      empty: { ...block, input: {} },
      deltas: [{ type: 'input_json_delta', partial_json: JSON.stringify(input) }],
    }
  if (type !== 'thinking') return { empty: block, deltas: [] }
  const signed = { type: 'signature_delta', signature }
  return { empty: { type, thinking: '', signature: '' }, deltas: [{ type: 'thinking_delta', thinking }, signed] }
}

function ofResponses(response: JsonObject): JsonObject[] {
  const items = objectsIn(response['output']).flatMap((item, output_index) => {
    const { id: item_id, content, summary } = item
    const texts = objectsIn(content).map(({ text }, content_index) => {
      return { type: 'response.output_text.delta', item_id, output_index, content_index, delta: text }
    })
    const thoughts = objectsIn(summary).flatMap(({ text }, summary_index) => {
      const part = { item_id, output_index, summary_index }
      return [
        { type: 'response.reasoning_summary_part.added', ...part },
        { type: 'response.reasoning_summary_text.delta', ...part, delta: text },
        { type: 'response.reasoning_summary_part.done', ...part },
      ]
    })
    const added = {
      ...item,
      ...(content !== undefined && { content: [] }),
      ...(summary !== undefined && { summary: [] }),
    }
    return [
      { type: 'response.output_item.added', output_index, item: added },
      ...thoughts,
      ...texts,
      { type: 'response.output_item.done', output_index, item },
    ]
  })
  const type = response['status'] === 'incomplete' ? 'response.incomplete' : 'response.completed'
  return [{ type: 'response.created', response: { ...response, output: [] } }, ...items, { type, response }]
}
