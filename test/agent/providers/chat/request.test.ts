import { expect } from 'chai'
import { createChatBody } from '../../../../shared/agent/providers/chat/request.ts'
import type { Message, ModelRequest } from '../../../../shared/agent/providers/port.ts'
import { LeftOut } from '../../../../shared/agent/providers/unsupported-options.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { ModelOptions } from '../../../../shared/kernel/model-options.ts'
import type { ProviderType } from '../../../../shared/kernel/provider-types.ts'
import { request } from '../ai-sdk/setup.ts'

const TOOLS = [{ name: 'Read', description: 'Reads', inputSchema: { type: 'object', properties: {} } }]

type Setup = { type?: ProviderType; options?: ModelOptions; namesStops?: boolean; origin?: string }

/** Builds bodies for one server, whose refusals are remembered from one body to the next. */
function bodiesFor({
  type = 'openai-compatible',
  options = {},
  namesStops = false,
  origin = 'models.test',
}: Setup = {}) {
  const lines: string[] = []
  const leftOut = new LeftOut(type, (line) => lines.push(line))
  const quirks = { origin, sendsReasoning: false, namesStops }
  const toBody = createChatBody({ type, options, quirks, leftOut })
  const bodyOf = (fields: Partial<ModelRequest> = {}) =>
    JSON.parse(String(Buffer.from(toBody(request(fields)).json))) as JsonObject
  return { bodyOf, toBody, leftOut, lines }
}

describe("the body of a request in OpenAI's chat format", () => {
  it('has the system prompt first, asks for a stream with its usage, and has nothing that was not asked for', () => {
    const whole = {
      model: 'test-model',
      stream_options: { include_usage: true },
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'hi' },
      ],
      stream: true,
    }
    expect(bodiesFor().bodyOf({ system: 'be brief' })).to.deep.equal(whole)
    expect(bodiesFor({ type: 'ollama' }).bodyOf({ system: 'be brief' })).to.deep.equal(whole)
    expect(bodiesFor().bodyOf()['messages']).to.deep.equal([{ role: 'user', content: 'hi' }])
  })

  it('has the configured options, and what concerns tools only where there are tools', () => {
    const options = {
      max_output_tokens: 9,
      temperature: 0,
      reasoning_effort: 'low',
      parallel_tool_calls: false,
    } as const
    const { bodyOf } = bodiesFor({ options })
    const choices = { toolChoice: { name: 'Read' } }
    expect(bodyOf({ choices })).to.include({ max_tokens: 9, temperature: 0, reasoning_effort: 'low' })
    expect(bodyOf({ choices })).to.not.have.any.keys('parallel_tool_calls', 'tools', 'tool_choice')
    const named = { type: 'function', function: { name: 'Read' } }
    expect(bodyOf({ choices, tools: TOOLS }))
      .to.deep.include({ parallel_tool_calls: false, tool_choice: named })
      .and.have.property('tools')
    expect(bodyOf({ choices: { toolChoice: 'none' }, tools: TOOLS })).to.include({ tool_choice: 'none' })
  })

  it('names the output limit as the server takes it, and the other way once one name was refused', () => {
    const options = { max_output_tokens: 9 }
    for (const [type, first, other] of [
      ['openai', 'max_completion_tokens', 'max_tokens'],
      ['openai-compatible', 'max_tokens', 'max_completion_tokens'],
    ] as const) {
      const { bodyOf, leftOut } = bodiesFor({ type, options })
      expect(bodyOf(), type)
        .to.include({ [first]: 9 })
        .and.not.have.property(other)
      leftOut.add('test-model', first)
      expect(bodyOf(), type)
        .to.include({ [other]: 9 })
        .and.not.have.property(first)
    }
  })

  it("leaves a temperature out for OpenAI's reasoning models, and says so once", () => {
    const { bodyOf, lines } = bodiesFor({ type: 'openai', options: { temperature: 1 } })
    for (const model of ['gpt-5.1', 'gpt-5.1', 'gpt-4o']) bodyOf({ model })
    bodiesFor({ type: 'openai' }).bodyOf({ model: 'gpt-5.1' })
    expect(lines).to.deep.equal(['openai does not take temperature for gpt-5.1: it is left out'])
  })

  const warm: Setup = { options: { temperature: 1 } }
  const stops = { stopSequences: ['a'] }
  const BY_MODEL: [field: string, setup: Setup, asked: Partial<ModelRequest>, has: string[], lacks: string[]][] = [
    ['temperature', { ...warm, type: 'openai' }, {}, ['gpt-4o', 'demo3', 'xgpt-5'], ['o3', 'gpt-5.1', 'openai/gpt-9']],
    ['temperature', warm, {}, ['o3', 'gpt-5.1'], []],
    ['stop', { namesStops: true }, stops, ['gpt-4o', 'demo3', 'my-grok-4', 'grok-2'], ['o3', 'a/gpt-5', 'x-ai/grok-4']],
    ['stop', {}, stops, [], ['gpt-4o']],
  ]
  for (const [field, setup, asked, has, lacks] of BY_MODEL)
    it(`D4.11: has ${field} for ${has.join(', ') || 'no model'} and lacks it for ${lacks.join(', ') || 'none'}`, () => {
      const { bodyOf } = bodiesFor(setup)
      for (const model of has) expect(bodyOf({ ...asked, model }), model).to.have.property(field)
      for (const model of lacks) expect(bodyOf({ ...asked, model }), model).to.not.have.property(field)
    })

  it("asks OpenAI's models from 5.6 on for no reasoning where there are tools", () => {
    const effortOf = (type: ProviderType, model: string, tools = TOOLS) =>
      bodiesFor({ type, options: { reasoning_effort: 'high' } }).bodyOf({ model, tools })['reasoning_effort']
    for (const model of ['gpt-5.6', 'openai/gpt-5.6', 'gpt-5.12'])
      expect(effortOf('openai', model), model).to.equal('none')
    for (const model of ['gpt-5.5', 'gpt-5.1', 'xgpt-5.6', 'gpt-5x6'])
      expect(effortOf('openai', model), model).to.equal('high')
    expect(effortOf('openai', 'gpt-5.6', [])).to.equal('high')
    expect(effortOf('openai-compatible', 'gpt-5.6')).to.equal('high')
  })

  it('D4.11: has four stop sequences at most, and no blank one', () => {
    const stopSequences = [' ', 'a', 'b', 'c', 'd', 'e']
    expect(bodiesFor({ namesStops: true }).bodyOf({ stopSequences })['stop']).to.deep.equal(['a', 'b', 'c', 'd'])
    expect(bodiesFor({ namesStops: true }).bodyOf({ stopSequences: [' '] })).to.not.have.property('stop')
  })

  it('D5.8: has the context window for Ollama, and a cache key for OpenAI alone', () => {
    const options = { context_window: 4_096 }
    expect(bodiesFor({ type: 'ollama', options }).bodyOf()['options']).to.deep.equal({ num_ctx: 4_096 })
    expect(bodiesFor({ options }).bodyOf()).to.not.have.any.keys('options', 'prompt_cache_key')
    expect(bodiesFor({ type: 'openai' }).bodyOf()).to.have.property('prompt_cache_key')
  })

  it('has the form of the answer, strict where its schema allows that', () => {
    const closed = { type: 'object', properties: {}, required: [], additionalProperties: false }
    const strictOf = (schema: JsonObject) => bodiesFor().bodyOf({ output: { name: 'n', schema } })['response_format']
    expect(strictOf(closed)).to.deep.equal({
      type: 'json_schema',
      json_schema: { name: 'n', schema: closed, strict: true },
    })
    expect(strictOf({})).to.deep.equal({ type: 'json_schema', json_schema: { name: 'n', schema: {}, strict: false } })
  })

  it('names the parts that a server may refuse, and leaves out those that it has refused', () => {
    const attachments = [{ name: 'a.png', mediaType: 'image/png', base64: 'AA==' }]
    const results = [{ id: 'a', toolName: 'Read', output: 'a.png', isError: false, attachments }]
    const asked = request({ messages: [{ role: 'tool', results }], tools: TOOLS })
    const { toBody, leftOut } = bodiesFor({ options: { temperature: 1 } })
    const parts = ['temperature', 'stream_options', 'attachments', 'tools']
    expect(toBody(asked).optionalParts).to.have.members(parts)
    for (const part of parts) leftOut.add('test-model', part)
    const { json, optionalParts } = toBody(asked)
    expect(optionalParts).to.deep.equal([])
    expect(String(Buffer.from(json))).to.not.match(/temperature|stream_options|image_url|tools/)
    expect(bodiesFor().toBody(request()).optionalParts).to.deep.equal(['stream_options'])
  })
})

describe('the cache points of a request', () => {
  const CACHED = { cache_control: { type: 'ephemeral' } }
  const image = { name: 'a.png', mediaType: 'image/png', base64: 'AA==' }
  const url = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }
  const said = (text: string): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })
  const HISTORY: Message[] = [
    { role: 'user', text: 'one' },
    said('two'),
    { role: 'user', text: 'three', attachments: [image] },
    said('four'),
    { role: 'user', text: 'five' },
  ]
  const contentsOf = (messages: Message[], origin = 'openrouter.ai', model = 'anthropic/claude-x') => {
    const body = bodiesFor({ origin }).bodyOf({ model, system: 'be brief', messages })
    return (body['messages'] as JsonObject[]).map(({ content }) => content)
  }
  const marked = (text: string) => [{ type: 'text', text, ...CACHED }]

  it('stand behind the system prompt, at the end, and at the end of the request before', () => {
    const before = [
      { type: 'text', text: 'three' },
      { ...url, ...CACHED },
    ]
    expect(contentsOf(HISTORY)).to.deep.equal([...[marked('be brief'), 'one', 'two', before, 'four', marked('five')]])
    expect(contentsOf(HISTORY.slice(0, 1))).to.deep.equal([marked('be brief'), marked('one')])
    expect(contentsOf(HISTORY.slice(0, 2)), 'an answer is no end').to.deep.equal([
      ...[marked('be brief'), marked('one'), 'two'],
    ])
    expect(contentsOf([{ role: 'user', text: '' }]), 'a text of nothing cannot be marked').to.deep.equal([
      ...[marked('be brief'), ''],
    ])
  })

  it('are those of Claude behind OpenRouter alone', () => {
    const isMarked = (origin: string, model: string) =>
      JSON.stringify(contentsOf(HISTORY, origin, model)).includes('cache')
    for (const [origin, model, expected] of [
      ['openrouter.ai', 'claude-x', true],
      ['eu.openrouter.ai', 'anthropic/claude-x', true],
      ['notopenrouter.ai', 'claude-x', false],
      ['openrouter.ai.test', 'claude-x', false],
      ['openrouter.ai', 'openai/gpt-5.1', false],
      ['openrouter.ai', 'myclaude-x', false],
    ] as const)
      expect(isMarked(origin, model), `${model} at ${origin}`).to.equal(expected)
  })
})
