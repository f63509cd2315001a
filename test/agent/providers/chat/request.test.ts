import { expect } from 'chai'
import { createChatBody } from '../../../../shared/agent/providers/chat/request.ts'
import type { ModelRequest } from '../../../../shared/agent/providers/port.ts'
import { LeftOut } from '../../../../shared/agent/providers/unsupported-options.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { ModelOptions } from '../../../../shared/kernel/model-options.ts'
import type { ProviderType } from '../../../../shared/kernel/provider-types.ts'
import { request } from '../ai-sdk/setup.ts'

const TOOLS = [{ name: 'Read', description: 'Reads', inputSchema: { type: 'object', properties: {} } }]

type Setup = { type?: ProviderType; options?: ModelOptions; namesStops?: boolean }

/** Builds bodies for one server, whose refusals are remembered from one body to the next. */
function bodiesFor({ type = 'openai-compatible', options = {}, namesStops = false }: Setup = {}) {
  const lines: string[] = []
  const leftOut = new LeftOut(type, (line) => lines.push(line))
  const quirks = { origin: 'models.test', sendsReasoning: false, namesStops }
  const toBody = createChatBody({ type, options, quirks, leftOut })
  const bodyOf = (fields: Partial<ModelRequest> = {}) =>
    JSON.parse(String(Buffer.from(toBody(request(fields)).json))) as JsonObject
  return { bodyOf, toBody, leftOut, lines }
}

describe("the body of a request in OpenAI's chat format", () => {
  it('has the system prompt first, asks for a stream with its usage, and has nothing that was not asked for', () => {
    expect(bodiesFor().bodyOf({ system: 'be brief' })).to.deep.equal({
      model: 'test-model',
      stream_options: { include_usage: true },
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'hi' },
      ],
      stream: true,
    })
  })

  it('has the configured options, and parallel calls only where there are tools', () => {
    const options = {
      max_output_tokens: 9,
      temperature: 0,
      reasoning_effort: 'low',
      parallel_tool_calls: false,
    } as const
    const { bodyOf } = bodiesFor({ options })
    expect(bodyOf()).to.include({ max_tokens: 9, temperature: 0, reasoning_effort: 'low' })
    expect(bodyOf()).to.not.have.any.keys('parallel_tool_calls', 'tools')
    expect(bodyOf({ tools: TOOLS }))
      .to.include({ parallel_tool_calls: false })
      .and.have.property('tools')
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
    expect(bodyOf({ model: 'gpt-5.1' })).to.not.have.property('temperature')
    expect(bodyOf({ model: 'gpt-4o' })).to.include({ temperature: 1 })
    expect(lines).to.deep.equal(['openai does not take temperature for gpt-5.1: it is left out'])
  })

  it("asks OpenAI's models from 5.6 on for no reasoning where there are tools", () => {
    const { bodyOf } = bodiesFor({ type: 'openai', options: { reasoning_effort: 'high' } })
    expect(bodyOf({ model: 'gpt-5.6', tools: TOOLS })).to.include({ reasoning_effort: 'none' })
    expect(bodyOf({ model: 'gpt-5.6' })).to.include({ reasoning_effort: 'high' })
    expect(bodyOf({ model: 'gpt-5.5', tools: TOOLS })).to.include({ reasoning_effort: 'high' })
  })

  it('D4.11: has stop sequences only where the server names the one that it found, four at most, and no blank one', () => {
    const stopSequences = [' ', 'a', 'b', 'c', 'd', 'e']
    expect(bodiesFor().bodyOf({ stopSequences })).to.not.have.property('stop')
    const { bodyOf } = bodiesFor({ namesStops: true })
    expect(bodyOf({ stopSequences })['stop']).to.deep.equal(['a', 'b', 'c', 'd'])
    for (const model of ['o3', 'openai/gpt-5.1', 'grok-4'])
      expect(bodyOf({ stopSequences, model })).to.not.have.property('stop')
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
    const asked = request({ messages: [{ role: 'tool', results }] })
    const { toBody, leftOut } = bodiesFor({ options: { temperature: 1 } })
    expect(toBody(asked).optionalParts).to.have.members(['temperature', 'stream_options', 'attachments'])
    for (const part of ['temperature', 'stream_options', 'attachments']) leftOut.add('test-model', part)
    const { json, optionalParts } = toBody(asked)
    expect(optionalParts).to.deep.equal([])
    expect(String(Buffer.from(json))).to.not.match(/temperature|stream_options|image_url/)
  })
})
