import { expect } from 'chai'
import { Conversation } from '../../../shared/agent/engine/conversation.ts'
import { run } from '../../../shared/agent/engine/run.ts'
import { firstCallTokens, firstModel } from '../../../shared/agent/engine/run-input.ts'
import { oneByOne } from '../../../shared/kernel/async/batch.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { inputOf, play, resourcesOf, scripted, talk } from './context/setup.ts'
import { tool } from './tool-step-setup.ts'

describe('a turn whose provider counts no tokens', () => {
  it('D5.8: is estimated at four characters a token, with the input of its tool calls', async () => {
    const input = JSON.stringify({ path: 'a'.repeat(70) })
    const { events } = await play(
      scripted(
        [
          { type: 'tool_call', id: 'a', toolName: 'Dig', input },
          { type: 'finish', reason: 'tool_use', usage: undefined },
        ],
        [
          { type: 'text_delta', text: 'x'.repeat(400) },
          { type: 'finish', reason: 'end_turn', usage: undefined },
        ],
      ),
      { prompt: 'p'.repeat(4_000) },
    )
    const [first, second] = events.filter((event) => event.type === 'turn_end')
    expect(first).to.include({ output_tokens: Math.ceil(input.length / 4) })
    expect(first?.input_tokens).to.be.within(1_000, 1_100)
    expect(second).to.include({ output_tokens: 100 })
  })
  it('D57: is estimated before the call as it is counted then, with all that the call would have', async () => {
    const provider = scripted([
      { type: 'text_delta', text: 'x' },
      { type: 'finish', reason: 'end_turn', usage: undefined },
    ])
    const routes = () => ({ primary: { provider, model: 'm' }, fallback: undefined })
    const models = { main: routes, subAgents: routes, summaries: routes, windowOf: () => undefined, priceOf: () => 0 }
    const { tools, ...resources } = resourcesOf(models, '')
    const servers = () => [{ name: 'one', state: 'ready' as const, instructions: 'Dig deep. '.repeat(20) }]
    const toolBox = { ...tools.toolBox, tools: [{ ...tool('Dig'), server: 'one' }], servers }
    const file = { file_id: 'file_1', name: 'a.png', media_type: 'image/png', bytes: 8 }
    const given = { prompt: 'dig', background: 'a customer', systemPrompt: 'be brief', files: [file] }
    const input = () => inputOf({ ...given, conversation: new Conversation({ messages: talk(3) }) })
    const estimated = await firstCallTokens(input(), toolBox)
    expect(provider.requests).to.have.length(0)
    const { signal } = new AbortController()
    const readFile = async () => Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
    const events: AgentEvent[] = []
    for await (const event of oneByOne(run(input(), { ...resources, tools: { ...tools, toolBox }, readFile, signal })))
      events.push(event)
    const [first] = events.filter((event) => event.type === 'turn_end')
    expect(first?.input_tokens).to.equal(estimated)
    expect(provider.requests[0]?.system).to.include('Dig deep')
    const [dear, cheap] = ['dear', 'cheap'].map((model) => ({ provider, model }))
    const main = () => ({ primary: dear ?? expect.fail(), fallback: cheap, strategy: 'cheapest' as const })
    const priceOf = (_provider: object, model: string) => (model === 'dear' ? 2 : 1)
    expect(firstModel(input(), { ...models, main, priceOf }, toolBox).model, 'by its strategy').to.equal('cheap')
  })
})
