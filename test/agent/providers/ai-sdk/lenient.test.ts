// Tests event-fields.ts and event-body.ts: answers of servers that copy a vendor's format and leave fields out.

import { expect } from 'chai'
import type { ModelPart } from '../../../../shared/agent/providers/port.ts'
import { useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, DIALECTS, type Dialect, partsOf, textOf } from './setup.ts'

type Events = (object | string)[]

const anthropicCall = (...json: string[]): Events => [
  { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', id: 'c', name: 'Read', input: {} } },
  ...json.map((partial_json) => ({
    type: 'content_block_delta',
    index: 1,
    delta: { type: 'input_json_delta', partial_json },
  })),
  { type: 'content_block_stop', index: 1 },
]

const END = { type: 'message_delta', delta: { stop_reason: 'tool_use' } }

const google = (parts: object[], more: object = {}) => ({ candidates: [{ content: { parts }, ...more }] })

/** Per dialect: thinking where it has any, the text `ok`, and one call, with the fewest fields. */
const MINIMAL: Partial<Record<Dialect, Events>> = {
  'openai-compatible': [
    { choices: [{ delta: { reasoning_content: '', reasoning: 'hm' } }] },
    { choices: [{ delta: { content: 'ok', reasoning_content: null } }] },
    { choices: [{ delta: { tool_calls: [{ function: { name: 'Read', arguments: '{"a":1}' } }] } }] },
    { choices: [{ finish_reason: 'tool_calls' }] },
  ],
  anthropic: [
    { type: 'message_start', message: {} },
    { type: 'content_block_start', content_block: { type: 'text' } },
    { type: 'content_block_delta', delta: { type: 'text_delta', text: 'ok' } },
    { type: 'content_block_stop' },
    { type: 'content_block_start', content_block: { type: 'tool_use', name: 'Read' } },
    { type: 'content_block_delta', delta: { type: 'input_json_delta', partial_json: '{"a":1}' } },
    { type: 'content_block_stop' },
    { ...END, usage: null },
    { type: 'message_delta', delta: {}, usage: { output_tokens: null } },
  ],
  google: [
    google([{ text: 'ok' }], { safetyRatings: 'none', groundingMetadata: 7 }),
    google([{ functionCall: { name: 'Read', args: { a: 1 } } }, { somethingNew: 1 }], { finishReason: 'STOP' }),
    { usageMetadata: { promptTokensDetails: [{ modality: 'TEXT' }] }, modelVersion: 5, promptFeedback: [] },
  ],
  openai: [
    { type: 'response.created', response: {} },
    { type: 'response.output_item.added', item: { type: 'message' } },
    { type: 'response.output_text.delta', delta: 'ok', logprobs: {} },
    { type: 'response.output_text.annotation.added', annotation: { type: 'unheard of' } },
    { type: 'response.output_item.done', item: { type: 'message', phase: 'odd' } },
    { type: 'response.output_item.added', item: { type: 'function_call', call_id: 'c', name: 'Read' } },
    {
      type: 'response.output_item.done',
      item: { type: 'function_call', call_id: 'c', name: 'Read', arguments: '{"a":1}' },
    },
    { type: 'response.completed', response: { usage: null } },
  ],
  'ollama natively': [
    { message: { content: 'ok' } },
    { message: { tool_calls: [{ function: { name: 'Read', arguments: { a: 1 } } }] } },
    { done: true },
  ],
}

describe('an answer with no more fields than the engine needs', () => {
  const server = useModelServer({ perTest: true })

  const read = async (dialect: Dialect, body: string): Promise<ModelPart[]> => {
    server.answer({ status: 200, headers: { 'content-type': 'text/event-stream' }, body })
    return ask(await connect(dialect, server))
  }
  const frame = (dialect: Dialect, each: object | string): string =>
    dialect === 'ollama natively' ? `${JSON.stringify(each)}\n` : `data: ${JSON.stringify(each)}\n\n`
  const bodyOf = (dialect: Dialect, events: Events) => events.map((each) => frame(dialect, each)).join('')
  const callsOf = (parts: ModelPart[]) => partsOf(parts, 'tool_call').map(({ toolName, input }) => [toolName, input])

  for (const [dialect, events] of Object.entries(MINIMAL) as [Dialect, Events][]) {
    it(`D5.8: is whole over ${dialect}, and its usage is to be estimated`, async () => {
      const parts = await read(dialect, bodyOf(dialect, events))
      expect(textOf(parts)).to.equal('ok')
      expect(callsOf(parts)).to.deep.equal([['Read', '{"a":1}']])
      expect(parts.at(-1)).to.deep.include({ type: 'finish', reason: 'tool_use', usage: undefined })
      if (dialect === 'openai-compatible') expect(textOf(parts, 'thinking_delta')).to.equal('hm')
    })

    it(`is the same over ${dialect} behind a byte order mark, and where lines end with CR alone`, async () => {
      const body = bodyOf(dialect, events)
      const expected = await read(dialect, body)
      const anyId = (parts: ModelPart[]) => parts.map((part) => ('id' in part ? { ...part, id: 'x' } : part))
      expect(anyId(await read(dialect, `\uFEFF${body}`))).to.deep.equal(anyId(expected))
      if (dialect === 'ollama natively') return // JSON on lines has no other line end.
      expect(anyId(await read(dialect, body.replaceAll('\n', '\r')))).to.deep.equal(anyId(expected))
    })
  }

  it('counts what is no number as no count, so that the usage is estimated', async () => {
    const body = bodyOf('anthropic', [
      { type: 'message_start', message: { usage: { input_tokens: '12' } } },
      ...(MINIMAL.anthropic ?? []).slice(1, 4),
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } },
    ])
    expect((await read('anthropic', body)).at(-1)).to.deep.include({ reason: 'end_turn', usage: undefined })
  })

  it('has one call where Anthropic’s format sends its input so far in each piece, or all of it once more', async () => {
    const start: Events = [{ type: 'message_start', message: {} }]
    for (const json of [
      ['{"a"', '{"a":1', '{"a":1}'],
      ['{"a":', '1}', '{"a":1}'],
    ]) {
      const parts = await read('anthropic', bodyOf('anthropic', [...start, ...anthropicCall(...json), END]))
      expect(callsOf(parts)).to.deep.equal([['Read', '{"a":1}']])
    }
  })

  for (const dialect of DIALECTS) {
    it(`makes a call once over ${dialect} that is sent twice with one id`, async () => {
      const tool = { tool: 'Read', id: 'call_1', input: { a: 1 } }
      server.answer([tool, tool, { ...tool, input: { a: 2 } }])
      expect(callsOf(await ask(await connect(dialect, server)))).to.deep.equal([
        ['Read', '{"a":1}'],
        ['Read', '{"a":2}'],
      ])
    })
  }
})
