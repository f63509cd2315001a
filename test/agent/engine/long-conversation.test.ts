import { expect } from 'chai'
import { run } from '../../../shared/agent/engine/run.ts'
import type { ModelRoute } from '../../../shared/agent/providers/port.ts'
import { succeed, type Tool } from '../../../shared/agent/tools/port.ts'
import { oneByOne } from '../../../shared/kernel/async/batch.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { type Answer, type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { connect, type Dialect } from '../providers/ai-sdk/setup.ts'
import { inputOf, resourcesOf } from './context/setup.ts'

const FORMATS = ['openai-compatible', 'openai', 'anthropic', 'google', 'ollama natively'] as const satisfies Dialect[]

const TURNS = 30
/** The turn from which on the first provider is out of credit. */
const SWITCH_AT = 16

/** Thinks, says something and calls one to three tools; the last turn only says something. */
function answerOf(turn: number): Answer {
  const said = [{ thinking: `thought ${turn}` }, { text: `turn ${turn} ` }]
  if (turn === TURNS) return said
  const calls = Array.from({ length: 1 + (turn % 3) }, (_, i) => ({ tool: 'Dig', input: { depth: turn, hole: i } }))
  return [...said, ...calls]
}

const dig: Tool = {
  name: 'Dig',
  description: 'Digs a hole.',
  inputSchema: { anyOf: [{ properties: { depth: { type: 'integer' } }, required: ['depth'] }] },
  defaultPolicy: 'allow',
  describe: () => 'Dig wants to run',
  run: async ({ depth, hole }) => succeed(Number(hole) === 1 ? '' : `gold ${String(depth)}.${String(hole)}`),
}

describe(`a conversation of ${TURNS} turns with tools, of which the fallback takes over the second half`, () => {
  const servers: ModelServer[] = []
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.close()
  })

  /** Both servers continue the same conversation: `turns` counts the answers of both. */
  async function start(first: Dialect, second: Dialect) {
    let turns = 0
    const route = async (dialect: Dialect, isOutOfCredit: () => boolean): Promise<ModelRoute> => {
      const server = await startModelServer()
      servers.push(server)
      server.otherwise(() => (isOutOfCredit() ? { status: 402 } : answerOf(++turns)))
      return { provider: await connect(dialect, server), model: 'test-model' }
    }
    const primary = await route(first, () => turns + 1 >= SWITCH_AT)
    const fallback = await route(second, () => false)
    const routes = () => ({ primary, fallback })
    const models = { main: routes, subAgents: routes, summaries: routes, windowOf: () => undefined, priceOf: () => 0 }
    const { tools, ...resources } = resourcesOf(models, '')
    const toolBox = { ...tools.toolBox, tools: [dig], find: () => dig }
    const signal = new AbortController().signal
    return run(inputOf({ prompt: 'dig', background: 'a customer', systemPrompt: 'be brief', maxTurns: 40 }), {
      ...resources,
      tools: { ...tools, toolBox },
      signal,
    })
  }

  for (const [index, first] of FORMATS.entries()) {
    const second = FORMATS[(index + 1) % FORMATS.length] ?? first
    it(`D5.5: has the same text over ${first} and then ${second}, and no request is refused`, async () => {
      const events: AgentEvent[] = []
      for await (const event of oneByOne(await start(first, second))) events.push(event)
      const texts = events.flatMap((event) => (event.type === 'text' ? [event.text] : []))
      expect(texts).to.deep.equal(Array.from({ length: TURNS }, (_, i) => `turn ${i + 1} `))
      const results = events.filter((event) => event.type === 'tool_result')
      expect(results.filter(({ is_error }) => is_error)).to.deep.equal([])
      expect(results).to.have.length(
        Array.from({ length: TURNS - 1 }, (_, i) => 1 + ((i + 1) % 3)).reduce((a, b) => a + b),
      )
      const warnings = events.flatMap((event) => (event.type === 'warning' ? [event.code] : []))
      expect(warnings).to.deep.equal(['provider_failover'])
      expect(servers.flatMap(({ refusals }) => refusals)).to.deep.equal([])
      expect(servers.map(({ requests }) => requests.length)).to.deep.equal([SWITCH_AT, TURNS - SWITCH_AT + 1])
      expect(events.at(-1)).to.deep.include({ type: 'done', turn_count: TURNS, stop_reason: 'end_turn' })
    })
  }
})
