import { expect } from 'chai'
import { createPrepareOneShot } from '../../services/worker/prepare-one-shot.ts'
import { createPrepareRun, type EngineOptions, type RunStart } from '../../services/worker/prepare-run.ts'
import { Conversation } from '../../shared/agent/engine/conversation.ts'
import { succeed, type Tool, type ToolContext } from '../../shared/agent/tools/port.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import { oneByOne } from '../../shared/kernel/async/batch.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { AgentEvent } from '../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { createSchemaCheckers } from '../../shared/platform/schemas/checker.ts'
import { createServerModels } from '../../shared/work/runs/models.ts'
import type { Run } from '../../shared/work/runs/run.ts'
import { digs, says200, scripted } from '../agent/engine/context/setup.ts'

/** A worker's engine whose one tool, `Dig`, records its context. */
function setUp(options: Partial<EngineOptions> = {}) {
  const provider = scripted(digs('1'), says200('ok'))
  const contexts: ToolContext[] = []
  const dig: Tool = {
    name: 'Dig',
    description: 'digs',
    inputSchema: {},
    defaultPolicy: 'allow',
    describe: () => 'Dig wants to run',
    async run(_input, context) {
      contexts.push(context)
      return succeed('gold')
    },
  }
  const prepareRun = createPrepareRun({
    models: createServerModels({
      primary: { provider, model: 'm' },
      fallback: undefined,
      priceOf: () => 0,
      windowOf: () => undefined,
    }),
    tools: {
      toolBox: { tools: [dig], find: () => dig, policyOf: () => 'allow', problemWith: async () => undefined },
      canAct: async () => true,
      mayAct: () => true,
      maxOutputChars: 3,
    },
    openAskFor: () => () => Promise.reject(new Error('no tool of this test asks')),
    workspaceOf: ({ id }) => `/folders/${id}`,
    onToolBug: () => {},
    schemas: createSchemaCheckers(),
    maxTurns: 2,
    ...options,
  })
  const run = { id: 'run_1', signal: new AbortController().signal, whenAccepted: async () => {} }
  const play = async (request: RunRequest, start: Partial<RunStart> = {}, more: Partial<Run> = {}) => {
    const defaults = { conversation: new Conversation(), background: undefined, services: {}, warnings: [] }
    const events: AgentEvent[] = []
    const running = prepareRun(DEFAULT_TENANT, request).execute({ ...run, ...more } as Run, { ...defaults, ...start })
    for await (const event of oneByOne(running)) events.push(event)
    return events
  }
  return { provider, contexts, prepareRun, run, play }
}

describe('a prepared run', () => {
  it('D1.3: SMALL_MODEL answers its sub-agents and summaries, at the same provider', () => {
    const route = { provider: scripted(), model: 'm' }
    const facts = { priceOf: () => 0, windowOf: () => undefined }
    const { main, subAgents, summaries } = createServerModels({
      primary: route,
      fallback: undefined,
      smallModel: 'small',
      ...facts,
    }).modelsFor(DEFAULT_TENANT, undefined)
    expect(main().primary).to.deep.equal(route)
    for (const each of [subAgents(), summaries()])
      expect(each.primary).to.deep.equal({ ...route, model: 'small', lacks: undefined })
  })

  it('D1.4: is refused with unavailable when the server has no model', () => {
    const models = { primary: undefined, fallback: undefined, priceOf: () => 0, windowOf: () => undefined }
    const { prepareRun } = setUp({ models: createServerModels(models) })
    expect(() => prepareRun(DEFAULT_TENANT, { prompt: 'hi' }))
      .to.throw(AppError, /no model is configured/)
      .with.property('retryAfterSecs', 30)
  })

  it('api.md RunRequest: sends system prompt, stop sequences and model of its request', async () => {
    const { provider, play } = setUp()
    await play({ prompt: 'dig', system_prompt: 'be brief', stop_sequences: ['END'], model: 'other' })
    expect(provider.requests[0]).to.deep.include({ model: 'other', system: 'be brief', stopSequences: ['END'] })
  })

  it('api.md RunRequest: uses the server’s model without system prompt and stop sequences by default', async () => {
    const { provider, play } = setUp()
    await play({ prompt: 'dig' })
    expect(provider.requests[0]).to.deep.include({ model: 'm', system: undefined, stopSequences: [] })
    expect(provider.requests[0]?.messages).to.deep.equal([{ role: 'user', text: 'dig' }])
  })

  it('api.md RunRequest: max_turns of the request replaces that of the server', async () => {
    expect((await setUp().play({ prompt: 'dig' })).at(-1)).to.include({ type: 'done' })
    const events = await setUp().play({ prompt: 'dig', max_turns: 1 })
    expect(events.at(-1)).to.include({ type: 'error', code: 'max_turns_exceeded' })
  })

  it('D42: its choices are those of the model calls; a tool is required of the first answer alone', async () => {
    const { provider, play } = setUp()
    const sampling = { effort: 'low', temperature: 0, max_output_tokens: 9 } as const
    await play({ prompt: 'hi', tool_choice: 'required', ...sampling })
    const [first, second] = provider.requests.map(({ choices }) => choices)
    expect(first).to.deep.equal({ effort: 'low', temperature: 0, maxOutputTokens: 9, toolChoice: 'required' })
    expect(second).to.deep.equal({ ...first, toolChoice: undefined })
  })

  it('D42: with no tool chosen it shows its tools in each call, and makes none', async () => {
    const { provider, contexts, play } = setUp()
    await play({ prompt: 'hi', tool_choice: 'none' })
    expect(provider.requests.map(({ choices, tools }) => [choices?.toolChoice, tools.length])).to.deep.equal([
      ['none', 1],
      ['none', 1],
    ])
    expect(contexts).to.deep.equal([])
  })

  it('D54.8, D58.6: one with a deadline calls its models behind the others, and from an hour on may wait for batches until its last fifth', async () => {
    const deadlineMs = 10 * 3_600_000
    for (const [hours, untilMs] of [
      [0.9, undefined],
      [10, 8 * 3_600_000],
    ] as const) {
      const { provider, play } = setUp()
      await play({ prompt: 'hi', background: true, deadline_hours: hours, customer_id: 'c' }, {}, { deadlineMs })
      for (const { caller } of provider.requests) {
        expect(caller).to.include({ priority: 'batch', customer: 'c', deadlineMs })
        expect(caller?.unhurried?.untilMs).to.equal(untilMs)
      }
      expect(provider.requests).to.have.length(2)
    }
  })

  it('D42.1: is offered the tools that it is allowed', async () => {
    const { provider, play } = setUp()
    await play({ prompt: 'hi', allowed_tools: ['Other'] })
    expect(provider.requests[0]?.tools).to.deep.equal([])
  })

  it('D41.1: has the schema behind its system prompt, and its answer is checked', async () => {
    const { provider, play } = setUp()
    const events = await play({ prompt: 'hi', system_prompt: 'Be kind.', response_schema: { type: 'string' } })
    expect(provider.requests[0]?.system).to.match(/^Be kind\.\n\n.*\{"type":"string"\}$/s)
    expect(events.at(-1)).to.include({ type: 'error', code: 'invalid_output' })
  })

  it('starts from the conversation, the background and the warnings that it is given', async () => {
    const { provider, play } = setUp()
    const conversation = new Conversation({ messages: [{ role: 'user', text: 'before' }] })
    const warnings = [{ type: 'warning', code: 'customer_scope_fallback', message: 'm', detail: {} }] as const
    const events = await play({ prompt: 'dig' }, { conversation, background: 'known', warnings })
    const texts = provider.requests[0]?.messages.map((message) => message.role === 'user' && message.text)
    expect(texts).to.deep.equal(['known', 'before', 'dig'])
    expect(events.slice(0, 2).map(({ type }) => type)).to.deep.equal(['turn_start', 'warning'])
    expect(conversation.messageCount).to.equal(4)
  })

  it('gives its tools the services, the run’s folder and the run’s signal, and cuts their output', async () => {
    const { contexts, run, play } = setUp()
    const memory = { history: async () => '', keep: async () => {} }
    const events = await play({ prompt: 'dig' }, { services: { memory } })
    expect(contexts[0]).to.include({ workspace: '/folders/run_1', memory, signal: run.signal })
    expect(events.find(({ type }) => type === 'tool_result'))
      .to.have.property('output')
      .that.matches(/^g\n\[… 2 of 4 characters left out …\]\nd$/)
  })
})

describe('a prepared one-shot run', () => {
  function prepare(request: RunRequest) {
    const { prepareRun, run, contexts } = setUp()
    const customers: string[] = []
    const prepareOneShot = createPrepareOneShot({
      prepareRun,
      prepareCustomerRun(prepared, { customerId, services }) {
        customers.push(customerId)
        return (of) =>
          prepared.execute(of, { conversation: new Conversation(), background: undefined, services, warnings: [] })
      },
      planQueue: (tenant) => async () => ({ note: tenant }),
    })
    const execute = prepareOneShot(DEFAULT_TENANT, request)()
    const play = async () => {
      for await (const _ of execute(run as Run, run.signal));
      return contexts[0]
    }
    return { customers, play }
  }

  it('is on the customer’s line when the request names a customer, and else it is not', async () => {
    expect(prepare({ prompt: 'dig', customer_id: 'c' }).customers).to.deep.equal(['c'])
    expect(prepare({ prompt: 'dig', customer_id: '' }).customers).to.deep.equal([])
    expect(prepare({ prompt: 'dig' }).customers).to.deep.equal([])
  })

  it('api.md RunRequest: has the tenant’s plan queue only with auto_queue_plan', async () => {
    for (const customer of [{}, { customer_id: 'c' }]) {
      const queued = await prepare({ prompt: 'dig', auto_queue_plan: true, ...customer }).play()
      expect(await queued?.queuePlan?.({ steps: [] })).to.deep.equal({ note: DEFAULT_TENANT })
      expect(await prepare({ prompt: 'dig', ...customer }).play()).not.to.have.property('queuePlan')
    }
  })

  it('has no memory for Dream without a customer', async () => {
    expect(await prepare({ prompt: 'dig' }).play()).not.to.have.property('memory')
  })
})
