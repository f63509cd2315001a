// Tests execute.ts and agents.ts: whole executions, with models over HTTP.

import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import type { Received } from '../../../support/model-server/model-server.ts'
import {
  type Bench,
  boxOf,
  definitionOf,
  flowOf,
  GOOD,
  INPUT,
  isFrom,
  isFromMain,
  lastOf,
  SCHEMA,
  subOf,
  systemOf,
  TRACE_ID,
  templateOf,
  toolOf,
  useBench,
} from './setup.ts'

const AT = '2026-01-02T03:04:05.678Z'
const USAGE = { input: 100, output: 10 }
const schemaText = `Your last message must be JSON that fits this JSON Schema, and nothing else:\n${JSON.stringify(SCHEMA)}`

describe('the execution of a flow', () => {
  let bench: Bench
  useBench((opened) => (bench = opened))

  it('api.md "Named flows" 7: reports its start, each turn, and returns the outcome with the same events', async () => {
    bench.server().answer({ steps: [{ text: GOOD }], usage: USAGE })
    const { events, outcome } = await bench.play()
    const started = {
      trace_id: TRACE_ID,
      flow_id: 'review',
      flow_version: 3,
      provider_instance: 'one',
      model: 'm1',
    }
    const progress = {
      agent: 'main',
      turn_number: 1,
      model: 'm1',
      input_tokens: 100,
      output_tokens: 10,
      cost_usd: 0.11,
    }
    expect(events).to.deep.equal([
      { type: 'started', ...started, at: AT },
      { type: 'progress', ...progress, at: AT },
    ])
    expect(outcome).to.deep.equal({
      status: 'ok',
      output: { answer: 'yes' },
      raw_output: GOOD,
      served_instance: 'one',
      error: null,
      turns: 1,
      input_tokens: 100,
      output_tokens: 10,
      cost_usd: 0.11,
      ...{ cache_read_tokens: 0, cache_write_tokens: 0 },
      timeline: [
        { event: 'started', at: AT, data: started },
        { event: 'progress', at: AT, data: progress },
      ],
    })
  })

  it('api.md "Flow definition": without templates the main agent reads the envelope, the schema and the memory', async () => {
    bench.server().answer(GOOD)
    await bench.play({ memory: 'It was wrong to say no.' })
    const [request] = bench.server().requests as [Received]
    expect(lastOf(request)).to.equal(JSON.stringify({ input: INPUT, sub_outputs: {} }))
    expect(systemOf(request)).to.equal(
      'You carry out the flow "review": you produce its output from its input. ' +
        "The user's message is a JSON object: `input` is the input of the flow, " +
        `\`sub_outputs\` holds the outputs of its sub-agents by name.\n\nIt was wrong to say no.\n\n${schemaText}`,
    )
    expect(request.model).to.equal('m1')
    expect(request.body).not.to.have.property('tools')
  })

  it('api.md "Flow definition": templates render input, outputs of sub-agents and memory, and replace both prompts', async () => {
    bench.server().otherwise((request) => (isFrom('critic', request) ? '{"answer":"no {{.memory}}"}' : GOOD))
    const flow = flowOf(['critic'])
    const system = templateOf('Weigh {{.sub_outputs.critic}}.')
    const user = templateOf('Text: {{.input.text}}; critic: {{.sub_outputs.critic.answer}}; memory: {{.memory}}')
    const templates = { system, user, subAgents: new Map([['critic', templateOf('You are critic. {{.memory}}')]]) }
    await bench.play({ ...flow, templates, memory: 'M' })
    const [sub, main] = bench.server().requests as [Received, Received]
    expect(systemOf(sub)).to.equal(`You are critic. M\n\n${schemaText}`)
    expect(lastOf(sub)).to.equal(JSON.stringify({ input: INPUT }))
    expect(systemOf(main)).to.equal(`Weigh {"answer":"no {{.memory}}"}.\n\n${schemaText}`)
    expect(lastOf(main)).to.equal('Text: hello; critic: no {{.memory}}; memory: M')
  })

  it('a template for the user message alone leaves the envelope out of the default system prompt', async () => {
    bench.server().answer(GOOD)
    await bench.play({ templates: { user: templateOf('Just do it.'), subAgents: new Map() } })
    const [request] = bench.server().requests as [Received]
    expect(systemOf(request)).to.equal(
      `You carry out the flow "review": you produce its output from its input.\n\n${schemaText}`,
    )
    expect(lastOf(request)).to.equal('Just do it.')
  })

  it('api.md "Named flows" 8: eight sub-agents run at the same time, and the main agent reads all their outputs', async () => {
    const names = Array.from({ length: 8 }, (_, i) => `agent${i}`)
    const allAsked = Promise.withResolvers<void>()
    bench.server().otherwise((request, index) => {
      if (index === 7) allAsked.resolve()
      const own = names.find((name) => isFrom(name, request))
      return [{ hold: allAsked.promise }, { text: `{"answer":"${own ?? 'all'}"}` }]
    })
    const { events, outcome } = await bench.play(flowOf(names))
    expect(outcome).to.deep.include({ status: 'ok', output: { answer: 'all' }, turns: 9 })
    const main = bench.server().requests.find(isFromMain) as Received
    const outputs = Object.fromEntries(names.map((name) => [name, { answer: name }]))
    expect(JSON.parse(lastOf(main))).to.deep.equal({ input: INPUT, sub_outputs: outputs })
    const agents = events.flatMap((event) => (event.type === 'progress' ? [event.agent] : []))
    expect(agents.at(-1)).to.equal('main')
    expect(agents.slice(0, -1).toSorted()).to.deep.equal(names)
  })

  it('a sub-agent is isolated: its own conversation, instance, model, tools and workspace folder', async () => {
    const places: string[] = []
    const tools = ['Read', 'Write'].map((name) =>
      toolOf(name, async (_input, { workspace }) => {
        places.push(`${name} in ${workspace}`)
        return { output: 'secret notes', isError: false }
      }),
    )
    bench.server('two').answer([{ tool: 'Read' }], GOOD)
    bench.server().answer([{ tool: 'Write' }, { tool: 'Read' }], GOOD)
    const sub = subOf('critic', { provider_instance: 'two', model: 'm9', tools: ['Read'] })
    const definition = definitionOf({ sub_agents: [sub], tools: ['Write', 'Gone'] })
    const { outcome } = await bench.play(
      { ...flowOf(['critic']), flow: { name: 'review', version: 3, definition } },
      {
        tools: {
          toolBox: boxOf(tools),
          services: {},
          owner: { tenant: DEFAULT_TENANT, scope: 'run' },
          workspace: () => '/workspaces/run',
          maxOutputChars: 1_000,
          canAct: async () => true,
          mayAct: () => true,
          onToolBug: () => {},
        },
      },
    )
    expect(outcome).to.include({ status: 'ok', turns: 4, served_instance: 'one' })
    expect(places).to.deep.equal(['Read in /workspaces/run/sub_agents/critic', 'Write in /workspaces/run'])
    const offered = (request: Received | undefined) => JSON.stringify(request?.body['tools'])
    const [first, second] = bench.server('two').requests
    expect(first?.model).to.equal('m9')
    expect(offered(first)).to.contain('"Read"').and.not.to.contain('"Write"')
    expect(second?.results.map(({ text }) => text)).to.deep.equal(['secret notes'])
    const [main, last] = bench.server().requests
    expect(offered(main)).to.contain('"Write"').and.not.to.contain('"Read"')
    expect(JSON.stringify(main?.body)).not.to.contain('secret notes')
    expect(last?.results[1]?.text, 'a tool of the sub-agent only').to.match(
      /^There is no tool Read\. The tools are: Write\./,
    )
  })

  it('totals are those of all agents and tries, and turns are numbered over the tries of one agent', async () => {
    bench.server().answer({ steps: [{ text: 'no JSON' }], usage: USAGE }, { steps: [{ text: GOOD }], usage: USAGE })
    bench.server().otherwise(() => ({ steps: [{ text: GOOD }], usage: { input: 1, output: 1 } }))
    const { events, outcome } = await bench.play(flowOf(['critic']))
    expect(outcome).to.include({ turns: 3, input_tokens: 201, output_tokens: 21, status: 'ok' })
    expect(outcome.cost_usd).to.be.closeTo(0.222, 1e-9)
    const turns = events.flatMap((event) => (event.type === 'progress' ? [`${event.agent} ${event.turn_number}`] : []))
    expect(turns).to.deep.equal(['critic 1', 'critic 2', 'main 1'])
  })

  it('D4.10: an unknown price is reported once for each model, by the agent that called it first', async () => {
    bench.server().otherwise((_request, index) => (index === 1 ? 'no JSON' : GOOD))
    const { events, outcome } = await bench.play(flowOf(['critic']), { priceOf: () => undefined })
    const warnings = events.flatMap((event) =>
      event.type === 'warning' ? [`${event.code} ${event.agent} ${event.at}`] : [],
    )
    expect(warnings).to.deep.equal([`price_unknown critic ${AT}`])
    expect(outcome.timeline.filter(({ event }) => event === 'warning')[0]?.data).to.include({
      code: 'price_unknown',
      agent: 'critic',
    })
  })

  it('an instance is opened once', async () => {
    bench.server().otherwise(() => GOOD)
    await bench.play(flowOf(['a1', 'a2', 'a3']))
    expect(bench.opened).to.deep.equal(['one'])
  })

  it('a refusal by a part of the server is a failure of its own and no fault of the request; a bug is reported', async () => {
    const failing = async (cause: Error) => {
      const { outcome } = await bench.play({}, { openModel: () => Promise.reject(cause) })
      return outcome.error
    }
    expect(await failing(new AppError('rate_limit', 'too many'))).to.include({ status: 502, message: 'too many' })
    expect(await failing(new AppError('unavailable', 'away'))).to.include({ status: 503 })
    expect(bench.bugs).to.deep.equal([])
    expect(await failing(new TypeError('a bug'))).to.include({ status: 500 })
    expect(bench.bugs.splice(0).map(String)).to.deep.equal(['TypeError: a bug'])
  })
})
