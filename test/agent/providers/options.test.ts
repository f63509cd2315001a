import { expect } from 'chai'
import type { ModelRequest } from '../../../shared/agent/providers/port.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import type { ModelOptions } from '../../../shared/kernel/model-options.ts'
import { useModelServer } from '../../support/model-server/model-server.ts'
import { ask, connect, DIALECTS, type Dialect, KEY, request } from './ai-sdk/setup.ts'

const TOOL = { name: 'Read', description: 'Reads a file.', inputSchema: { type: 'object', properties: {} } }
const SCHEMA: JsonObject = {
  type: 'object',
  properties: { n: { type: 'integer' } },
  required: ['n'],
  additionalProperties: false,
}

/** The fields of a request by the dotted paths where this dialect has them. */
type Expected = Record<Dialect, Record<string, unknown>>

const chat = (fields: Record<string, unknown>) => ({ 'openai-compatible': fields, ollama: fields })

const LIMIT: Expected = {
  ...chat({ max_tokens: 77 }),
  'ollama natively': { 'options.num_predict': 77 },
  'openai behind a gateway': { max_completion_tokens: 77 },
  openai: { max_output_tokens: 77 },
  anthropic: { max_tokens: 77 },
  google: { 'generationConfig.maxOutputTokens': 77 },
}

const TEMPERATURE: Expected = {
  ...chat({ temperature: 0.3 }),
  'ollama natively': { 'options.temperature': 0.3 },
  'openai behind a gateway': { temperature: 0.3 },
  openai: { temperature: 0.3 },
  anthropic: { temperature: 0.3 },
  google: { 'generationConfig.temperature': 0.3 },
}

const SERIAL: Partial<Expected> = {
  ...chat({ parallel_tool_calls: false }),
  'openai behind a gateway': { parallel_tool_calls: false },
  openai: { parallel_tool_calls: false },
  anthropic: { 'tool_choice.disable_parallel_tool_use': true },
}

const NAMED = { type: 'function', function: { name: 'Read' } }
const TOOL_CHOICE: Expected = {
  ...chat({ tool_choice: NAMED }),
  'ollama natively': { tool_choice: undefined },
  'openai behind a gateway': { tool_choice: NAMED },
  openai: { tool_choice: { type: 'function', name: 'Read' } },
  anthropic: { tool_choice: { type: 'tool', name: 'Read' } },
  google: { 'toolConfig.functionCallingConfig.allowedFunctionNames': ['Read'] },
}

const NO_TOOL: Expected = {
  ...chat({ tool_choice: 'none' }),
  'ollama natively': { tools: undefined },
  'openai behind a gateway': { tool_choice: 'none' },
  openai: { tool_choice: 'none' },
  anthropic: { 'tool_choice.type': 'none' },
  google: { 'toolConfig.functionCallingConfig.mode': 'NONE' },
}

const OUTPUT: Expected = {
  ...chat({ 'response_format.json_schema.schema': SCHEMA }),
  'ollama natively': { format: SCHEMA },
  'openai behind a gateway': { 'response_format.json_schema.schema': SCHEMA },
  openai: { 'text.format.schema': SCHEMA },
  anthropic: {},
  google: { 'generationConfig.responseMimeType': 'application/json' },
}

const at = (body: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (value as JsonObject | undefined)?.[key], body)

describe('the options of a model', () => {
  const server = useModelServer({ perTest: true })

  const sent = async (dialect: Dialect, options: ModelOptions, asked: Partial<ModelRequest> = {}) => {
    await ask(await connect(dialect, server, {}, options), request(asked))
    const [received] = server.requests
    return { body: received?.body, headers: received?.headers ?? {} }
  }

  const expectFields = (body: unknown, fields: Record<string, unknown> | undefined) => {
    for (const [path, value] of Object.entries(fields ?? {})) expect(at(body, path), path).to.deep.equal(value)
  }

  for (const dialect of DIALECTS) {
    it(`D1.3 MODEL_OPTIONS: the output limit reaches ${dialect}`, async () => {
      expectFields((await sent(dialect, { max_output_tokens: 77 })).body, LIMIT[dialect])
    })

    it(`D1.3 MODEL_OPTIONS: the temperature reaches ${dialect}, 0 included`, async () => {
      expectFields((await sent(dialect, { temperature: 0.3 })).body, TEMPERATURE[dialect])
      server.requests.length = 0
      const [path = ''] = Object.keys(TEMPERATURE[dialect])
      expect(at((await sent(dialect, { temperature: 0 })).body, path)).to.equal(0)
    })

    it(`D42.3: the choices of one run replace the options at ${dialect}, and never raise the output limit`, async () => {
      const options = { max_output_tokens: 77, temperature: 0.9 }
      const { body } = await sent(dialect, options, { choices: { maxOutputTokens: 500, temperature: 0.3 } })
      expectFields(body, { ...LIMIT[dialect], ...TEMPERATURE[dialect] })
      server.requests.length = 0
      const lower = { choices: { maxOutputTokens: 77 } }
      expectFields((await sent(dialect, { max_output_tokens: 90 }, lower)).body, LIMIT[dialect])
    })

    it(`D42.2: a choice of a tool reaches ${dialect}, in requests with tools only`, async () => {
      const choices = { toolChoice: { name: 'Read' } }
      expectFields((await sent(dialect, {}, { tools: [TOOL], choices })).body, TOOL_CHOICE[dialect])
      server.requests.length = 0
      expect(JSON.stringify((await sent(dialect, {}, { choices })).body)).not.to.match(/tool_?choice|allowedFunction/i)
      server.requests.length = 0
      const none = await sent(dialect, {}, { tools: [TOOL], choices: { toolChoice: 'none' } })
      expectFields(none.body, NO_TOOL[dialect])
    })

    it(`D1.3 MODEL_OPTIONS: extra headers reach ${dialect}, beside the key`, async () => {
      const { headers } = await sent(dialect, { headers: { 'x-team': 'blue' } })
      expect(headers['x-team']).to.equal('blue')
      expect(JSON.stringify(headers)).to.contain(KEY)
    })

    it(`D1.3 MODEL_OPTIONS: parallel tool calls can be switched off at ${dialect}, in requests with tools only`, async () => {
      const off = { parallel_tool_calls: false }
      expectFields((await sent(dialect, off, { tools: [TOOL] })).body, SERIAL[dialect])
      server.requests.length = 0
      expect(JSON.stringify((await sent(dialect, off)).body)).not.to.match(/parallel/i)
    })

    it(`an answer of a given form is asked for by ${dialect}'s own feature`, async () => {
      const { body } = await sent(dialect, {}, { output: { name: 'number', schema: SCHEMA } })
      expectFields(body, OUTPUT[dialect])
      expect(JSON.stringify(body)).to.contain('"integer"')
    })

    it(`an image reaches ${dialect}`, async () => {
      const attachments = [{ name: 'a.png', mediaType: 'image/png', base64: 'aGVsbG8=' }]
      const { body } = await sent(dialect, {}, { messages: [{ role: 'user', text: 'look', attachments }] })
      expect(JSON.stringify(body)).to.contain('aGVsbG8=').and.to.contain('look')
      if (dialect !== 'ollama natively') expect(JSON.stringify(body)).to.contain('image/png')
    })

    it(`without options ${dialect} is sent none`, async () => {
      const { body } = await sent(dialect, {}, { tools: [TOOL] })
      expect(JSON.stringify(body)).not.to.match(/temperature|reasoning_effort|parallel_tool_calls|thinkingConfig/i)
    })
  }

  for (const [dialect, path] of [
    ['openai-compatible', 'response_format.json_schema.strict'],
    ['openai', 'text.format.strict'],
  ] as const) {
    it(`strict adherence is asked of ${dialect} only for a schema that allows it`, async () => {
      const strictFor = async (schema: JsonObject) => {
        server.requests.length = 0
        return at((await sent(dialect, {}, { output: { name: 'number', schema } })).body, path)
      }
      expect(await strictFor(SCHEMA)).to.equal(true)
      expect(await strictFor({ ...SCHEMA, required: [] })).to.equal(false)
    })
  }

  for (const [dialect, model, path, value] of [
    ['openai-compatible', 'test-model', 'reasoning_effort', 'low'],
    ['openai behind a gateway', 'o4-mini', 'reasoning_effort', 'low'],
    ['openai', 'gpt-5.1', 'reasoning.effort', 'low'],
    ['anthropic', 'claude-sonnet-4-5', 'thinking.type', 'enabled'],
    ['google', 'gemini-2.5-pro', 'generationConfig.thinkingConfig.thinkingBudget', undefined],
  ] as const)
    it(`D1.3 MODEL_OPTIONS: the reasoning effort reaches ${dialect}`, async () => {
      const { body } = await sent(dialect, { reasoning_effort: 'low' }, { model })
      if (value === undefined) expect(at(body, path)).to.be.a('number')
      else expect(at(body, path)).to.equal(value)
    })

  it("a temperature is left out where OpenAI's reasoning models would refuse it", async () => {
    const { body } = await sent('openai behind a gateway', { temperature: 0.3 }, { model: 'o4-mini' })
    expect(body).not.to.have.property('temperature')
  })

  it('D5.8: timeout_secs is the time for the first byte', async () => {
    server.answer({ hangBeforeHeaders: true })
    const provider = await connect('openai-compatible', server, {}, { timeout_secs: 1 })
    const parts = await ask(provider)
    expect(parts.at(-1)).to.have.nested.property('failure.code', 'timeout')
  })

  it('D5.8: context_window is what the provider says of itself', async () => {
    for (const dialect of DIALECTS)
      expect((await connect(dialect, server, {}, { context_window: 123 })).contextWindow, dialect).to.equal(123)
  })
})
