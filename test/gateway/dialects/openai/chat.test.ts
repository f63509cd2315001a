// Tests chat.ts, flow-completion.ts and choices.ts: what a request starts, and what its client gets.
import { expect } from 'chai'
import type { FlowSurface } from '../../../../services/gateway/routes/flows/flows.ts'
import type { AgentEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import { DONE, framesOf, RUN_ID, refusalOf, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const PATH = '/openai/v1/chat/completions'
const user = (content: unknown) => ({ role: 'user', content })
const HI = { model: 'main', messages: [user('hi')] }
const SCHEMA = { type: 'object' }
const FORM = { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: SCHEMA } } }
const PICK = { name: 'pick', description: 'Picks.', parameters: SCHEMA }
const TOOLS = [
  { type: 'function', function: PICK },
  { type: 'mcp', server_label: 'agent-engine' },
]
const OWN = [{ name: 'pick', description: 'Picks.', input_schema: SCHEMA }]

const client: AgentEvent = { ...(of.call('c1', { of: 2 }) as object), executor: 'client' } as AgentEvent
const typed: AgentEvent = { ...(of.done as object), output: { n: 1 } } as AgentEvent

/** A flow that runs, and one whose output does not fit. */
const flows = {
  library: { published: async (_tenant: unknown, name: string) => ({ name, definition: {} }) },
  execution: {
    calls: {
      start: async (_tenant: unknown, name: string, start: object) => {
        started.push(start)
        const isFit = name === 'total'
        const answer = { verdict: isFit ? 'ok' : 'invalid_output', output: isFit ? { total: 1 } : null }
        return {
          ...{ traceId: `trace_${RUN_ID.slice('run_'.length)}`, isReplayed: name === 'total' },
          frames: async () => framesOf({ type: 'result', ...answer } as unknown as AgentEvent),
          answer: async () => answer,
        }
      },
    },
  },
} as unknown as FlowSurface
const config = { settings: { engine: async () => ({ routing: { main: { instance: 'own', model: 'm-1' } } }) } } as never
const started: object[] = []

describe('POST /openai/v1/chat/completions', () => {
  const start = useGateways({ perTest: false })
  let events: AgentEvent[] = []
  let post: Awaited<ReturnType<typeof start>>['post']
  before(async () => {
    const startRun = async (_tenant: unknown, request: object) => {
      started.push(request)
      return { runId: RUN_ID, frames: framesOf(...events) }
    }
    post = (await start({ methods: { startRun }, flows, config })).post
  })
  beforeEach(() => {
    started.length = 0
    events = [{ type: 'text', text: 'Hello.' }, DONE]
  })

  const ask = async (body: object, headers?: Record<string, string>) => {
    const response = await post(PATH, body, headers)
    return { response, body: (await response.json()) as { choices: [JsonObject]; usage: object } & JsonObject }
  }

  const own = { client_tools: OWN, ends_with_calls: true }
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }
  const STARTS: [what: string, body: object, request: object][] = [
    ['a model by its id', { model: 'm-2' }, { model: 'm-2' }],
    ['one stop sequence', { stop: 'END' }, { stop_sequences: ['END'] }],
    [
      'as many as the format has',
      { stop: Array(16).fill('a'.repeat(256)) },
      { stop_sequences: Array(16).fill('a'.repeat(256)) },
    ],
    ['no stop sequence', { stop: null, n: 1, tools: [] }, {}],
    ['the tools of the client, and none of the server', { tools: TOOLS }, own],
    [
      'a tool that is required',
      { tools: TOOLS, tool_choice: 'required' },
      { ...own, tool_choice: 'required', allowed_tools: ['pick'] },
    ],
    ['a tool that is required of the server', { tool_choice: 'required' }, { tool_choice: 'required' }],
    [
      'a tool without more than its name',
      { tools: [{ type: 'function', name: 'pick' }] },
      { ...own, client_tools: [{ name: 'pick' }] },
    ],
    ['the form of the answer', FORM, { response_schema: SCHEMA }],
    [
      'a history and instructions',
      {
        messages: [
          { role: 'system', content: 'brief' },
          user('one'),
          { role: 'assistant', content: 'two' },
          user('three'),
        ],
      },
      {
        ...{ prompt: 'three', system_prompt: 'brief' },
        messages: [user('one'), { role: 'assistant', content: 'two' }],
      },
    ],
  ]
  for (const [what, body, request] of STARTS)
    it(`D31.6b: starts one run with ${what}`, async () => {
      await ask({ ...HI, ...body })
      expect(started).to.deep.equal([{ prompt: 'hi', ...request }])
    })

  const ANSWERS: [what: string, body: object, events: AgentEvent[], choice: object][] = [
    [
      'its text',
      {},
      [{ type: 'text', text: 'Hello.' }, DONE],
      { message: { content: 'Hello.' }, finish_reason: 'stop' },
    ],
    [
      'a typed value',
      FORM,
      [{ type: 'text', text: 'so' }, typed],
      { message: { content: '{"n":1}' }, finish_reason: 'stop' },
    ],
    ['a typed text', FORM, [{ ...(of.done as object), output: 'a' } as AgentEvent], { message: { content: '"a"' } }],
    [
      'calls of the client, whose text is not the typed value',
      { ...FORM, tools: TOOLS },
      [{ type: 'text', text: 'Pick.' }, client, DONE],
      {
        message: { content: 'Pick.', tool_calls: [{ id: 'c1', function: { arguments: '{"of":2}' } }] },
        finish_reason: 'tool_calls',
      },
    ],
    [
      'calls without a text',
      { tools: TOOLS },
      [client, DONE],
      { message: { content: null }, finish_reason: 'tool_calls' },
    ],
  ]
  for (const [what, body, of_, choice] of ANSWERS)
    it(`D31.6b: answers whole with ${what}`, async () => {
      events = of_
      const { response, body: answer } = await ask({ ...HI, ...body })
      expect(answer.choices).to.containSubset([choice])
      expect(response.headers.get('x-run-id')).to.equal(RUN_ID)
    })

  it('D31.6b: names the run in the id of the answer, and its tokens, or none of a run that ends with a plan', async () => {
    const id = `chatcmpl-${RUN_ID.slice('run_'.length)}`
    const used = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    expect((await ask(HI)).body).to.deep.include({ id, object: 'chat.completion', model: 'main', usage: used })
    events = [of.queued]
    const none = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    expect((await ask(HI)).body.usage).to.deep.equal(none)
  })

  it('D31.6b: streams with the tokens where these are asked for', async () => {
    for (const [options, usages] of [
      [{ include_usage: true }, 1],
      [{ include_usage: false }, 0],
      [undefined, 0],
    ] as const) {
      const response = await post(PATH, { ...HI, stream: true, stream_options: options })
      const text = await response.text()
      expect(text.match(/"usage"/g)?.length ?? 0).to.equal(usages)
      expect(text).to.match(/^: ok\ndata: \{"id":"chatcmpl-.*\n\ndata: \[DONE\]\n\n$/s)
      expect(response.headers.get('x-run-id')).to.equal(RUN_ID)
    }
  })

  const flow = (more: object = {}) => ({ model: 'flow:total', messages: [user('12 and 13')], ...more })
  it('D31.6a: runs a flow on the main route, with the prompt as its input or in the field `text`', async () => {
    const { response, body } = await ask(flow())
    expect(body).to.containSubset({ model: 'flow:total', choices: [{ message: { content: '{"total":1}' } }] })
    expect([response.headers.get('idempotency-replayed'), response.headers.get('x-trace-id')]).to.deep.equal([
      ...['true', `trace_${RUN_ID.slice('run_'.length)}`],
    ])
    await ask(flow({ messages: [user('{"n":1}')] }))
    const run = { provider_instance: 'own', model: 'm-1' }
    expect(started.map((each) => (each as { request: object }).request)).to.containSubset([
      { ...run, input: { text: '12 and 13' } },
      { ...run, input: { n: 1 } },
    ])
    const stream = await (await post(PATH, flow({ stream: true }))).text()
    expect(stream).to.include('"content":"{\\"total\\":1}"').and.include('data: [DONE]')
  })

  it('D31.6a: fails where the output of a flow does not fit, and says where its problems are', async () => {
    const { response } = await ask(flow({ model: 'flow:unfit' }))
    expect(response.status).to.equal(502)
    const stream = await (await post(PATH, flow({ model: 'flow:unfit', stream: true }))).text()
    expect(stream).to.include('the output of unfit does not fit its schema: GET /dispatches/trace_')
  })

  it('D31.6a: refuses by its place what this server cannot do, before anything is started', async () => {
    const refused: [object, string][] = [
      [{ model: null }, '/model'],
      [{ model: ' x' }, '/model'],
      [{ model: 'flow:a b' }, '/model'],
      [{ tools: [{ type: 'function' }] }, '/tools/0/name'],
      [{ tools: [{ type: 'mcp', server_label: 'other' }] }, '/tools'],
      [{ tools: [{ type: 'custom', server_label: 'agent-engine' }] }, '/tools'],
      [{ n: 2 }, '/n'],
      [{ stop: [''] }, '/stop'],
      [{ stop: 7 }, '/stop'],
      [{ stop: 'a'.repeat(257) }, '/stop'],
      [{ stop: Array(17).fill('a') }, '/stop'],
      [{ audio: { voice: 'x' } }, '/audio'],
      [flow({ tools: TOOLS }), '/tools'],
      [flow(FORM), '/response_format'],
      [flow({ messages: [user([{ type: 'text', text: 'look' }, image])] }), '/messages'],
    ]
    for (const [body, param] of refused) {
      const response = await post(PATH, { ...HI, ...body })
      expect([response.status, (await refusalOf(response)).param], JSON.stringify(body)).to.deep.equal([400, param])
    }
    expect(started).to.deep.equal([])
  })
})
