// Tests bodies.ts, decode.ts and schema-check.ts: request bodies by the API document.

import { expect } from 'chai'
import { type AppError, invalidRequest } from '../../../shared/kernel/errors.ts'
import { createBodies } from '../../../shared/platform/api/bodies.ts'

const bodies = createBodies()

async function decode(name: string, text: string | Uint8Array<ArrayBuffer>): Promise<unknown> {
  const decoded = await bodies.decode(name, typeof text === 'string' ? new TextEncoder().encode(text) : text)
  if ('value' in decoded) return decoded.value
  throw invalidRequest(decoded.refusal.message, { param: decoded.refusal.param })
}

const FLOW = { input_schema: {}, output_schema: {} }
const BATCH = { provider_instance: 'main' }

const run = (fields: object) => decode('RunRequest', JSON.stringify({ prompt: 'hi', ...fields }))

async function refusalOf(decoded: Promise<unknown>): Promise<AppError> {
  return decoded.then(
    (value) => expect.fail(`accepted as ${JSON.stringify(value)?.slice(0, 80)}`),
    (error: AppError) => error,
  )
}

describe('request bodies', () => {
  it('api.md RunRequest: every known field is passed on unchanged', async () => {
    const body = {
      prompt: 'hi',
      model: 'm',
      system_prompt: '',
      max_turns: 200,
      stop_sequences: ['a', 'b'.repeat(256)],
      customer_id: 'c-1',
      auto_queue_plan: true,
    }
    expect(await decode('RunRequest', JSON.stringify(body))).to.deep.equal(body)
  })

  it('D2.4: unknown fields, and tools and stream of a run, are dropped whatever their value', async () => {
    expect(await run({ tools: 42, stream: { a: [null] }, extra: '\ud800' })).to.deep.equal({ prompt: 'hi' })
  })

  it('P13: a flow may have 100,000 values and its input 200,000, wherever they are', async () => {
    const list = (length: number) => Array.from({ length }, () => [[]])
    const flow = (length: number) => ({ ...FLOW, input_schema: { enum: list(length) } })
    const request = (length: number) => ({ input: { list: list(length) }, provider_instance: 'a' })
    for (const [schema, make, max] of [
      ['FlowRequest', flow, 100_000],
      ['FlowRunRequest', request, 200_000],
    ] as const) {
      await decode(schema, JSON.stringify(make(max / 2 - 10)))
      const { status, message } = await refusalOf(decode(schema, JSON.stringify(make(max / 2))))
      expect([status, message]).to.deep.equal([400, `the body has more than ${max} values; send less`])
    }
  })

  it('D2.11: an explicit session_id is neither `.` nor `..`, nor of the form of a run’s id', async () => {
    const create = (id: string) => decode('CreateSessionRequest', JSON.stringify({ session_id: id }))
    const hex = '0123456789abcdef'.repeat(2)
    for (const id of ['.', '..', `run_${hex}`]) {
      const { status, param, message } = await refusalOf(create(id))
      expect([status, param], id).to.deep.equal([400, '/session_id'])
      expect(message).to.include('run_')
    }
    for (const id of ['...', '.a', `run_${hex}0`, `run_${hex.toUpperCase()}`, `sess_${hex}`, `x-run_${hex}`]) {
      expect(await create(id)).to.deep.equal({ session_id: id })
    }
  })

  it('D2.4: unknown fields of the objects inside are dropped, too', async () => {
    const main = { instance: 'a', model: 'm' }
    const body = { routing: { main: { ...main, x: 1 }, other: main }, audit: { store_payloads: true, x: 1 } }
    expect(await decode('EngineConfigRequest', JSON.stringify(body))).to.deep.equal({
      routing: { main },
      audit: { store_payloads: true },
    })
  })

  it('D2.4: constructor, prototype and $where are ordinary unknown fields', async () => {
    const text = '{"prompt":"hi","constructor":{"prototype":{"x":1}},"$where":"1","hasOwnProperty":1,"toString":null}'
    expect(await decode('RunRequest', text)).to.deep.equal({ prompt: 'hi' })
  })

  it('D2.1: an absent body counts as {}, and a missing required field is named', async () => {
    expect(await decode('CreateSessionRequest', '')).to.deep.equal({})
    const { message, param } = await refusalOf(decode('RunRequest', ''))
    expect({ message, param }).to.deep.equal({ message: 'prompt is required', param: '/prompt' })
  })

  const wrongTypes: [string, object, string, string][] = [
    ['RunRequest', { prompt: 1 }, '/prompt', 'prompt must be a string of 1 to 100000 characters'],
    ['RunRequest', { prompt: null }, '/prompt', 'prompt must be a string'],
    ['RunRequest', { prompt: '' }, '/prompt', 'prompt must be a string of 1 to 100000 characters'],
    ['RunRequest', { prompt: ' \n\t\u00a0\u3000' }, '/prompt', 'not white space alone'],
    ['RunRequest', { model: 7 }, '/model', 'model must be a string of 1 to 256 characters'],
    ['RunRequest', { model: null }, '/model', 'model must be'],
    ['RunRequest', { system_prompt: [] }, '/system_prompt', 'system_prompt must be a string'],
    ['RunRequest', { max_turns: 0 }, '/max_turns', 'max_turns must be a whole number from 1 to 200'],
    ['RunRequest', { max_turns: 201 }, '/max_turns', 'max_turns must be a whole number'],
    ['RunRequest', { max_turns: 1.5 }, '/max_turns', 'max_turns must be a whole number'],
    ['RunRequest', { max_turns: '3' }, '/max_turns', 'max_turns must be a whole number'],
    ['RunRequest', { stop_sequences: 'END' }, '/stop_sequences', 'stop_sequences must be a list of at most 16 entries'],
    ['RunRequest', { stop_sequences: Array(17).fill('a') }, '/stop_sequences', 'a list of at most 16'],
    [
      'RunRequest',
      { stop_sequences: ['a', ''] },
      '/stop_sequences/1',
      'stop_sequences[1] must be a string of 1 to 256',
    ],
    ['RunRequest', { stop_sequences: ['a'.repeat(257)] }, '/stop_sequences/0', 'stop_sequences[0] must be'],
    ['RunRequest', { customer_id: 'a\u0000' }, '/customer_id', 'without control characters'],
    ['RunRequest', { customer_id: 'a'.repeat(129) }, '/customer_id', 'at most 128 characters'],
    ['RunRequest', { auto_queue_plan: 1 }, '/auto_queue_plan', 'auto_queue_plan must be true or false'],
    ['SendMessageRequest', { prompt: {} }, '/prompt', 'prompt must be a string'],
    ['CreateSessionRequest', { session_id: 'a b' }, '/session_id', 'A-Z a-z 0-9'],
    ['CreateSessionRequest', { session_id: '' }, '/session_id', '1 to 128'],
    ['CreateSessionRequest', { session_id: null }, '/session_id', '1 to 128'],
    ['PermissionReplyRequest', { allow: 'true' }, '/allow', 'allow must be true or false'],
    ['PermissionReplyRequest', { allow: null }, '/allow', 'allow must be true or false'],
    ['PermissionReplyRequest', {}, '/allow', 'allow is required'],
    ['PermissionReplyRequest', { allow: true, reason: 5 }, '/reason', 'reason must be a string'],
    ['EngineConfigRequest', { routing: [] }, '/routing', 'routing must be a JSON object'],
    ['EngineConfigRequest', { routing: { main: {} } }, '/routing/main/instance', 'routing.main.instance is required'],
    [
      'EngineConfigRequest',
      { routing: { main: { instance: 'a', model: 'm', fallback_model: 'n' } } },
      '/routing/main/fallback_instance',
      'routing.main.fallback_instance is required beside fallback_model',
    ],
    ['EngineConfigRequest', { audit: { retention_days: 0 } }, '/audit/retention_days', 'a whole number from 1 to 3650'],
    ['FlowRequest', {}, '/input_schema', 'input_schema is required'],
    ['FlowRequest', { ...FLOW, input_schema: true }, '/input_schema', 'input_schema must be a JSON object'],
    ['FlowRequest', { ...FLOW, name: 'Upper' }, '/name', 'a name of 1 to 64 of the characters a-z'],
    ['FlowRequest', { ...FLOW, evolve: 'yes' }, '/evolve', 'evolve must be true or false'],
    ['FlowRequest', { ...FLOW, model: '' }, '/model', 'model must be a string of 1 to 256 characters'],
    [
      'FlowRequest',
      { ...FLOW, system_prompt_template: {} },
      '/system_prompt_template',
      'must be a string of 0 to 100000',
    ],
    ['FlowRequest', { ...FLOW, tools: 'Read' }, '/tools', 'tools must be a list of at most 128 names of tools'],
    ['FlowRequest', { ...FLOW, tools: [''] }, '/tools/0', 'tools[0] must be a string of 1 to 256 characters'],
    ['FlowRequest', { ...FLOW, sub_agents: Array(9).fill(1) }, '/sub_agents', 'a list of at most 8 entries'],
    ['FlowRequest', { ...FLOW, sub_agents: [1] }, '/sub_agents/0', 'sub_agents[0] must be a JSON object'],
    ['FlowRequest', { ...FLOW, sub_agents: [{ prompt: '' }] }, '/sub_agents/0/name', 'sub_agents[0].name is required'],
    [
      'FlowRequest',
      { ...FLOW, sub_agents: [{ name: '1', prompt: '', output_schema: {} }] },
      '/sub_agents/0/name',
      'that begins with a letter',
    ],
    ['RunRequest', { attachments: [{ data: '' }] }, '/attachments/0/data', 'must be the bytes of a file in base64'],
    ['FlowBatchRequest', { ...BATCH, items: [] }, '/items', 'items must be a list of 1 to 10000 entries'],
    ['FlowBatchRequest', { ...BATCH, file_id: 'f' }, '/file_id', 'file_id must be the id of a file, file_ and 32 hex'],
    [
      'FlowBatchRequest',
      { ...BATCH, items: [{ custom_id: '', input: {} }] },
      '/items/0/custom_id',
      'items[0].custom_id must be a string of 1 to 128 characters without control characters',
    ],
    ['LimitsRequest', { tokens_per_day: 0 }, '/tokens_per_day', 'tokens_per_day must be'],
    ['LimitsRequest', { tokens_per_day: 1e308 }, '/tokens_per_day', 'tokens_per_day must be'],
    ['LimitsRequest', { usd_per_day: -1 }, '/usd_per_day', 'usd_per_day must be'],
    ['LimitsRequest', { usd_per_day: 1e308 }, '/usd_per_day', 'usd_per_day must be'],
    ['LimitsRequest', { concurrent_runs: 0.5 }, '/concurrent_runs', 'concurrent_runs must be a whole number'],
    ['LimitsRequest', { requests_per_minute: '60' }, '/requests_per_minute', 'requests_per_minute must be'],
    ['LimitsRequest', { customers: { overides: {} } }, '/customers/overides', 'only the fields default, overrides'],
    [
      'LimitsRequest',
      { customers: { overrides: { '\nbatch': { weight: 1 } } } },
      '/customers/overrides/\nbatch',
      'must be the id of a customer',
    ],
    ['FlowMemoryRequest', { content: 5 }, '/content', 'content must be a text or a JSON object of at most 8192 bytes'],
    ['InstanceRequest', { type: 'nobody' }, '/type', 'type must be one of openai, anthropic, google,'],
    ['InstanceRequest', { type: 'openai', key: 'a b' }, '/key', 'printable ASCII characters without blanks'],
    ['InstanceRequest', { type: 'openai', key: 'a', secret: 'b' }, '/secret', 'give key or secret, not both'],
    [
      'InstanceRequest',
      { type: 'openai', options: { top_k: 1 } },
      '/options/top_k',
      'only the fields max_output_tokens,',
    ],
    [
      'InstanceRequest',
      { type: 'openai', options: { temperature: 3 } },
      '/options/temperature',
      'a number from 0 to 2',
    ],
    ['InstanceRequest', { type: 'openai', options: { headers: { 'a b': '' } } }, '/options/headers/a b', 'header name'],
    ['InstanceRequest', { type: 'openai', options: { headers: { a: 'ä' } } }, '/options/headers/a', 'ASCII characters'],
  ]
  for (const [name, fields, param, message] of wrongTypes) {
    it(`D2.4: ${name} ${JSON.stringify(fields).slice(0, 60)} is 400 and names the field and what it must be`, async () => {
      const base = name.endsWith('Request') && name !== 'PermissionReplyRequest' ? { prompt: 'hi' } : {}
      const error = await refusalOf(decode(name, JSON.stringify({ ...base, ...fields })))
      expect(error).to.include({ kind: 'invalid_request', status: 400, param })
      expect(error.message).to.include(message)
    })
  }

  it('D2.4: the schemas of a flow and the input of a run are passed on as they are, deeper unknown fields included', async () => {
    const schema = { type: 'object', properties: { name: { const: null }, constructor: {} }, x: [{ y: 1 }] }
    const flow = { input_schema: schema, output_schema: {} }
    expect(await decode('FlowRequest', JSON.stringify({ ...flow, version: [], x: 1 }))).to.deep.equal(flow)
    const call = { input: { input: schema, toString: 1 }, provider_instance: 'main' }
    expect(await decode('FlowRunRequest', JSON.stringify({ ...call, x: 1 }))).to.deep.equal(call)
  })

  it('D4.11, D2.4: 1e400 is not a whole number', async () => {
    expect(await refusalOf(decode('RunRequest', '{"prompt":"a","max_turns":1e400}'))).to.include({
      param: '/max_turns',
    })
  })

  it('D2.11: a customer_id is empty or 1 to 128 characters, a session_id has the form of D2.11', async () => {
    expect(await run({ customer_id: '' })).to.include({ customer_id: '' })
    expect(await run({ customer_id: '😀'.repeat(128) })).to.include({ customer_id: '😀'.repeat(128) })
    const id = `A.z_9:-${'a'.repeat(121)}`
    expect(await decode('CreateSessionRequest', JSON.stringify({ session_id: id }))).to.deep.equal({ session_id: id })
  })

  it('api.md RunRequest: provider_instance on /agent/run is refused whatever its value, elsewhere it is unknown', async () => {
    for (const value of ['x', '', null, 0, {}]) {
      const { message, param } = await refusalOf(run({ provider_instance: value }))
      expect(param).to.equal('/provider_instance')
      expect(message).to.match(/^provider_instance is not accepted here/)
    }
    const text = '{"prompt":"hi","provider_instance":"x"}'
    expect(await decode('SendMessageRequest', text)).to.deep.equal({ prompt: 'hi' })
  })

  it('D2.6: a prompt has at most 100,000 code points, whatever their size in bytes', async () => {
    for (const character of ['a', 'é', '😀']) {
      expect(await run({ prompt: character.repeat(100_000) })).to.include({ prompt: character.repeat(100_000) })
      expect(await refusalOf(run({ prompt: character.repeat(100_001) }))).to.include({ param: '/prompt' })
    }
  })

  it('a lone surrogate in any known field is 400', async () => {
    expect((await refusalOf(run({ prompt: 'a\ud83d' }))).message).to.match(/^prompt holds half a surrogate pair/)
    expect(await refusalOf(run({ stop_sequences: ['a', '\ude00'] }))).to.include({ param: '/stop_sequences/1' })
  })

  const malformed: [string, string | Uint8Array<ArrayBuffer>, RegExp][] = [
    ['an array', '[]', /must be a JSON object/],
    ['a string', '"prompt"', /must be a JSON object/],
    ['null', 'null', /must be a JSON object/],
    ['half an object', '{"prompt":"hi"', /not valid JSON/],
    ['two objects', '{"prompt":"hi"}{}', /not valid JSON/],
    ['single quotes', "{'prompt':'hi'}", /not valid JSON/],
    ['white space', '  ', /not valid JSON/],
    ['a raw control character', '{"prompt":"a\u0001"}', /not valid JSON/],
    ['invalid UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d), /not valid UTF-8/],
    ['an encoded surrogate', Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22), /not valid UTF-8/],
    ['a depth of 65', `{"prompt":"hi","x":${'['.repeat(64)}${']'.repeat(64)}}`, /more than 64 deep/],
    ['a key __proto__', '{"prompt":"hi","a":[{"__proto__":{}}]}', /__proto__/],
    ['an overwritten __proto__', '{"prompt":"hi","a":{"__proto__":1},"a":1}', /__proto__/],
    ['a spelled-out __proto__', '{"prompt":"hi","\\u005f_\\u0070roto__" :1}', /__proto__/],
  ]
  for (const [what, text, message] of malformed) {
    it(`api.md Errors: ${what} is 400`, async () => {
      const error = await refusalOf(decode('RunRequest', text))
      expect(error).to.include({ kind: 'invalid_request', status: 400, param: undefined })
      expect(error.message).to.match(message)
    })
  }

  it('a byte order mark, a depth of 64 and the text __proto__ as a value are accepted', async () => {
    const text = `\ufeff{"prompt":"__proto__","x":${'['.repeat(63)}${']'.repeat(63)}}`
    expect(await decode('RunRequest', text)).to.deep.equal({ prompt: '__proto__' })
  })
})
