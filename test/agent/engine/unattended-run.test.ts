import { expect } from 'chai'
import { runUnattended } from '../../../shared/agent/engine/unattended-run.ts'
import { failure } from '../../../shared/agent/providers/failures/failures.ts'
import type { ModelPart, ModelProvider } from '../../../shared/agent/providers/port.ts'
import { succeed, type Tool } from '../../../shared/agent/tools/port.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { digs, resourcesOf, says200, scripted } from './context/setup.ts'

const REFUSED: ModelPart[] = [
  { type: 'failure', failure: failure('provider_rejected', 'bad_request', 'no such field') },
]

/** Runs an agent whose one tool, `Dig`, has this policy. */
async function play(provider: ModelProvider, policy: 'allow' | 'ask' = 'allow') {
  const events: AgentEvent[] = []
  let calls = 0
  const dig: Tool['run'] = async () => {
    calls++
    return succeed('gold')
  }
  const route = () => ({ primary: { provider, model: 'm' }, fallback: undefined })
  const models = { main: route, subAgents: route, summaries: route, windowOf: () => undefined, priceOf: () => 0 }
  const { tools } = resourcesOf(models, '', dig)
  const toolBox = { ...tools.toolBox, policyOf: () => policy }
  const end = await runUnattended(
    { prompt: 'dig', systemPrompt: undefined, maxTurns: 4 },
    { models, tools: { ...tools, toolBox }, signal: new AbortController().signal },
    async (event) => void events.push(event),
  )
  return { end, events, calls }
}

describe('an agent in which nobody can be asked', () => {
  it('ends with the answer of its last turn, and each event is told before', async () => {
    const { end, events, calls } = await play(scripted(digs('a'), says200('a nugget')))
    expect('answer' in end && end.answer.text).to.equal('a nugget')
    expect(calls).to.equal(1)
    expect(events.at(-1)?.type).to.equal('done')
  })

  it('is refused a tool that asks, and goes on', async () => {
    const provider = scripted(digs('a'), says200('nothing'))
    const { end, calls } = await play(provider, 'ask')
    expect([calls, 'answer' in end && end.answer.text]).to.deep.equal([0, 'nothing'])
    const [, second] = provider.requests
    expect(JSON.stringify(second?.messages.at(-1))).to.include('Permission to use Dig was denied')
  })

  it('ends with its failure, whatever it has said before', async () => {
    const { end } = await play(scripted(digs('a'), REFUSED))
    expect('failure' in end && end.failure).to.deep.include({ type: 'error', code: 'provider_rejected' })
  })
})
