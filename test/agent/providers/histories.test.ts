import { expect } from 'chai'
import type { AssistantBlock, Message, ToolDefinition } from '../../../shared/agent/providers/port.ts'
import { useModelServer } from '../../support/model-server/model-server.ts'
import { ask, connect, DIALECTS, type Dialect, request } from './ai-sdk/setup.ts'

const uses = (id: string): AssistantBlock => ({ type: 'tool_use', id, toolName: 'Read', input: {} })
const gives = (...results: [id: string, output: string][]): Message => ({
  role: 'tool',
  results: results.map(([id, output]) => ({ id, toolName: 'Read', output, isError: false })),
})

/** Everything that some server refuses: neighbours of one role, blank texts, ids that are long, foreign or used twice. */
const HISTORY: Message[] = [
  { role: 'user', text: 'the background' },
  { role: 'user', text: 'one' },
  { role: 'assistant', blocks: [{ type: 'text', text: ' \n' }, uses('call_0'), uses('call_0')] },
  gives(['call_0', 'first'], ['call_0', 'second']),
  { role: 'assistant', blocks: [{ type: 'thinking', text: 'hm' }, uses('functions.Read:0'), uses('x'.repeat(70))] },
  gives(['functions.Read:0', 'third'], ['x'.repeat(70), 'fourth']),
  { role: 'user', text: 'two' },
  { role: 'assistant', blocks: [{ type: 'thinking', text: 'only thoughts' }] },
  { role: 'user', text: 'three' },
  { role: 'assistant', blocks: [uses('call_0')] },
  gives(['call_0', 'fifth']),
]

const MODELS: Record<Dialect, string[]> = {
  'openai-compatible': ['test-model', 'mistral-large-latest', 'google/gemma-3-27b-it'],
  ollama: ['test-model', 'mistral-nemo'],
  'ollama natively': ['test-model', 'mistral-nemo'],
  'openai behind a gateway': ['gpt-4o'],
  openai: ['gpt-4o'],
  anthropic: ['claude-x'],
  google: ['gemini-x'],
}

describe('a history that some server would refuse', () => {
  const server = useModelServer({ perTest: true })

  for (const dialect of DIALECTS) {
    for (const model of MODELS[dialect]) {
      it(`is taken by ${model} over ${dialect}, with every result behind its own call`, async () => {
        const parts = await ask(await connect(dialect, server), request({ model, messages: HISTORY }))
        expect(parts.at(-1)).to.include({ type: 'finish' })
        const sent = JSON.stringify(server.requests[0]?.body)
        const texts = ['the background', 'one', 'first', 'second', 'third', 'fourth', 'two', 'three', 'fifth']
        const places = texts.map((text) => sent.indexOf(text))
        expect(places)
          .to.deep.equal(places.toSorted((a, b) => a - b))
          .and.not.include(-1)
      })
    }
  }

  it('keeps ids that every server takes', async () => {
    const messages = [HISTORY[0], { role: 'assistant' as const, blocks: [uses('call_abc')] }, gives(['call_abc', 'x'])]
    await ask(await connect('openai-compatible', server), request({ messages: messages as Message[] }))
    expect(JSON.stringify(server.requests[0]?.body))
      .to.include('"id":"call_abc"')
      .and.include('"tool_call_id":"call_abc"')
  })
})

describe('the schema of a tool', () => {
  const server = useModelServer({ perTest: true })

  const text = { type: 'string' }
  const SCHEMAS: Record<string, ToolDefinition['inputSchema']> = {
    Empty: {},
    Bare: { type: 'object' },
    Any: {
      anyOf: [
        { type: 'object', properties: { path: text, kind: { const: 'a' } }, required: ['path', 'kind'] },
        { type: 'object', properties: { url: text, kind: { const: 'b' } }, required: ['url', 'kind'] },
      ],
    },
    One: { type: 'object', properties: { a: text }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
    All: {
      allOf: [
        { properties: { a: text }, required: ['a'] },
        { properties: { b: text }, required: ['b'] },
      ],
    },
    Ref: { $ref: '#/$defs/input', $defs: { input: { type: 'object', properties: { a: text }, required: ['a'] } } },
  }
  const tools = Object.entries(SCHEMAS).map(([name, inputSchema]) => ({ name, description: name, inputSchema }))

  for (const dialect of DIALECTS) {
    it(`is an object at the top over ${dialect}, whatever combines it`, async () => {
      const parts = await ask(await connect(dialect, server), request({ tools }))
      expect(parts.at(-1)).to.include({ type: 'finish' })
    })
  }

  it('has the properties of all alternatives, and requires those that all of them require', async () => {
    await ask(await connect('openai-compatible', server), request({ tools }))
    const sent = server.requests[0]?.body['tools'] as { function: { name: string; parameters: unknown } }[]
    const [empty, bare, any, one, all, ref] = sent.map((each) => each.function.parameters)
    expect([empty, bare]).to.deep.equal([
      { type: 'object', properties: {} },
      { type: 'object', properties: {} },
    ])
    const kind = { anyOf: [{ const: 'a' }, { const: 'b' }] }
    expect(any).to.deep.equal({ type: 'object', properties: { path: text, kind, url: text }, required: ['kind'] })
    expect(one).to.deep.equal({ type: 'object', properties: { a: text } })
    expect(all).to.deep.equal({ type: 'object', properties: { a: text, b: text }, required: ['a', 'b'] })
    expect(ref)
      .to.deep.include({ type: 'object', properties: { a: text }, required: ['a'] })
      .and.not.have.property('$ref')
  })
})
