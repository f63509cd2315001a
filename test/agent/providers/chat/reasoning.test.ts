// Tests think-tags.ts and reasoning.ts: the thinking of an answer, and what of it is sent back.

import { expect } from 'chai'
import type { AssistantBlock, Message, ModelPart, ModelProvider } from '../../../../shared/agent/providers/port.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { callPiece, chunk, DONE, end, events, say } from '../../../support/model-server/chat-servers.ts'
import { startModelServer, useModelServer } from '../../../support/model-server/model-server.ts'
import { ask, connect, partsOf, request, textOf } from '../ai-sdk/setup.ts'

/** The blocks that a conversation keeps of an answer. */
function blocksOf(parts: ModelPart[]): AssistantBlock[] {
  const blocks: AssistantBlock[] = []
  let text = ''
  for (const part of parts) {
    if (part.type === 'text_delta' || part.type === 'thinking_delta') text += part.text
    if (part.type === 'text_end') blocks.push({ type: 'text', text })
    if (part.type === 'thinking_end') blocks.push({ type: 'thinking', text, ...(part.meta && { meta: part.meta }) })
    if (part.type === 'tool_call') {
      const { id, toolName, meta } = part
      blocks.push({ type: 'tool_use', id, toolName, input: {}, ...(meta && { meta }) })
    }
    if (part.type.endsWith('_end')) text = ''
  }
  return blocks
}

const turnOf = (parts: ModelPart[]): Message[] => [
  { role: 'user', text: 'hi' },
  { role: 'assistant', blocks: blocksOf(parts) },
  { role: 'tool', results: [{ id: 'a', toolName: 'Read', output: 'x', isError: false }] },
]

const READ = callPiece({ id: 'a', function: { name: 'Read', arguments: '{}' } })

describe("the reasoning of a server with OpenAI's chat format", () => {
  let provider: ModelProvider
  const server = useModelServer({ perTest: true })
  beforeEach(async () => {
    provider = await connect('openai-compatible', server)
  })

  const read = (...chunks: (object | string)[]) => {
    server.answer(events(...chunks))
    return ask(provider)
  }
  const sentBack = async (parts: ModelPart[], to = provider): Promise<JsonObject> => {
    await ask(to, request({ messages: turnOf(parts) }))
    const { messages = [] } = (server.requests.at(-1)?.body ?? {}) as { messages?: JsonObject[] }
    return messages[1] ?? {}
  }

  it('in `reasoning_details` is sent back merged and in order, as OpenRouter wants it for Gemini 3 and Claude', async () => {
    const detail = (fields: object) =>
      chunk({ reasoning_details: [{ format: 'anthropic-claude-v1', index: 0, ...fields }] })
    const parts = await read(
      detail({ type: 'reasoning.text', text: 'let ' }),
      detail({ type: 'reasoning.text', text: 'me' }),
      detail({ type: 'reasoning.text', signature: 'sig' }),
      say('so'),
      detail({ type: 'reasoning.encrypted', data: 'EpEg', index: 1, id: 'tool_1' }),
      READ,
      end(),
      DONE,
    )
    expect(textOf(parts, 'thinking_delta')).to.equal('let me')
    expect((await sentBack(parts))['reasoning_details']).to.deep.equal([
      { format: 'anthropic-claude-v1', index: 0, type: 'reasoning.text', text: 'let me', signature: 'sig' },
      { format: 'anthropic-claude-v1', index: 1, type: 'reasoning.encrypted', data: 'EpEg', id: 'tool_1' },
    ])
  })

  it('is shown once when `reasoning` and `reasoning_details` hold the same text', async () => {
    const reasoning_details = [{ type: 'reasoning.text', text: 'hm', index: 0 }]
    const parts = await read(chunk({ reasoning: 'hm', reasoning_details }), say('ok'), end(), DONE)
    expect(textOf(parts, 'thinking_delta')).to.equal('hm')
  })

  it('in `reasoning_content` is sent back in that field, and `reasoning` is not', async () => {
    const own = await read(chunk({ reasoning_content: 'hm' }), READ, end(), DONE)
    expect(await sentBack(own)).to.include({ reasoning_content: 'hm' })
    const other = await connect('openai-compatible', server)
    server.answer(events(chunk({ reasoning: 'hm' }), READ, end(), DONE))
    expect(await sentBack(await ask(other), other)).not.to.include.any.keys('reasoning_content', 'reasoning')
  })

  it('is not sent to another server, which would refuse its fields', async () => {
    const google = { google: { thought_signature: 'EpEg' } }
    const parts = await read(
      chunk({ reasoning_content: 'hm', reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] }),
      callPiece({ id: 'a', function: { name: 'Read', arguments: '{}' }, extra_content: google }),
      end(),
      DONE,
    )
    const fallback = await startModelServer()
    await ask(await connect('openai-compatible', fallback), request({ messages: turnOf(parts) }))
    const sent = JSON.stringify(fallback.requests[0]?.body)
    await fallback.close()
    expect(sent)
      .to.include('tool_calls')
      .and.not.match(/reasoning|EpEg/)
  })
})

describe('thinking in tags at the beginning of the content', () => {
  const server = useModelServer({ perTest: true })

  const read = async (pieces: string[]) => {
    server.answer(events(...pieces.map((piece) => say(piece)), end(), DONE))
    const parts = await ask(await connect('openai-compatible', server))
    const kinds = parts.map(({ type }) => type).filter((type) => !type.endsWith('_delta'))
    return {
      thinking: textOf(parts, 'thinking_delta'),
      text: textOf(parts),
      kinds,
      texts: partsOf(parts, 'text_delta'),
    }
  }

  it('is read as thinking, wherever the chunks are cut', async () => {
    const content = '\n<think>\nlet me <b>see</b> </thin\n</think>\n\nthe answer'
    for (const size of [1, 2, 3, 5, 8, 100]) {
      const pieces = content.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      expect(await read(pieces), `pieces of ${size}`).to.deep.include({
        thinking: 'let me <b>see</b> </thin\n',
        text: 'the answer',
        kinds: ['thinking_end', 'text_end', 'finish'],
      })
    }
  })

  it('is no block when it is empty', async () => {
    expect(await read(['<think>', '\n\n', '</think>', '\n\n', 'ok'])).to.deep.include({
      thinking: '',
      text: 'ok',
      kinds: ['text_end', 'finish'],
    })
  })

  it('that never closes is thinking to the end', async () => {
    expect(await read(['<think>', 'hm </thi'])).to.deep.include({ thinking: 'hm </thi', text: '' })
  })

  for (const text of ['<thinker> is a tag', '  <th', 'a <think>b</think> c', ' x']) {
    it(`is not seen in ${JSON.stringify(text)}`, async () => {
      expect(await read(Array.from(text))).to.deep.include({ thinking: '', text })
    })
  }

  it('leaves a text without tags in its chunks', async () => {
    const pieces = Array.from({ length: 20 }, (_, i) => `${i} `)
    expect((await read(pieces)).texts.map(({ text }) => text)).to.deep.equal(pieces)
  })
})
