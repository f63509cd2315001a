import { randomUUID } from 'node:crypto'
import { HttpAgent } from '@ag-ui/client'
import { expect } from 'chai'
import type { Form } from '../../../shared/platform/config/fields.ts'
import { until } from '../../support/until.ts'
import { type RunningProduct, agent as subAgent, tool, write } from './dialect-product.ts'

const LIST = tool('TodoWrite', { todos: [] })

/** The package `@ag-ui/client`, unmodified: it checks the order of events and builds the messages. */
export function agUiTests(product: RunningProduct, form: Form): void {
  const thread = () => new HttpAgent({ url: `${product().url}/ag-ui`, threadId: `thread-${randomUUID()}` })
  const ask = (agent: HttpAgent, content: string) => {
    agent.addMessage({ id: randomUUID(), role: 'user', content })
    return agent.runAgent()
  }
  const textOf = ({ messages }: HttpAgent) =>
    messages.flatMap((each) => (each.role === 'assistant' && each.content ? [each.content] : [])).join('|')
  const resume = (agent: HttpAgent, payload: object) => {
    const [interrupt] = agent.pendingInterrupts
    return agent.runAgent({ resume: [{ interruptId: interrupt?.id ?? '', status: 'resolved', payload }] })
  }

  it('a thread has the texts, the thoughts and the calls of its runs', async () => {
    const agent = thread()
    await ask(agent, `/think hm\n${LIST}\n/say done`)
    expect(textOf(agent)).to.match(/\|done\|/)
    expect(agent.messages.some(({ role }) => role === 'reasoning')).to.equal(true)
    expect(agent.messages.some(({ role }) => role === 'tool')).to.equal(true)
    await ask(agent, '/say again')
    expect(textOf(agent)).to.match(/\|again$/)
    const { body } = await product().call('GET', `/sessions/${agent.threadId}`)
    expect(body).to.include({ message_count: 5 })
  })

  it('a run is interrupted by an approval, and goes on when it is allowed, denied, or allowed with other arguments', async () => {
    const answers: [object, RegExp][] = [
      [{ approved: true }, /Write answered/],
      [{ approved: false, reason: 'not on a Friday' }, /not on a Friday/],
      [{ approved: true, editedArgs: { path: 'b.txt', content: 'other' } }, /The user changed the input.*b\.txt/s],
    ]
    for (const [payload, wanted] of answers) {
      const agent = thread()
      await ask(agent, `${write('a.txt')}\n/say bye`)
      expect(agent.pendingInterrupts[0]).to.include({
        reason: 'confirmation',
        message: 'Write 5 bytes to the file a.txt.',
      })
      await resume(agent, payload)
      expect(textOf(agent)).to.match(wanted)
      expect(agent.pendingInterrupts).to.deep.equal([])
    }
  })

  it("D46.4: the page's own tools are called by it, their results begin its next run, and a message ends the wait for one", async () => {
    const agent = thread()
    const tools = [{ name: 'get_order', description: 'Looks an order up.', parameters: { type: 'object' } }]
    const openCalls = () => {
      const answered = agent.messages.flatMap((each) => (each.role === 'tool' ? [each.toolCallId] : []))
      const calls = agent.messages.flatMap((each) => (each.role === 'assistant' ? (each.toolCalls ?? []) : []))
      return calls.filter(({ id }) => !answered.includes(id))
    }
    agent.addMessage({
      ...{ id: randomUUID(), role: 'user' },
      content: `${LIST}\n${tool('get_order', { id: 'A' })}\n${tool('get_order', { id: 'B' })}\n/say bye`,
    })
    await agent.runAgent({ tools })
    for (const id of ['A', 'B']) {
      const [call, ...others] = openCalls()
      expect([call?.function, others]).to.deep.equal([{ name: 'get_order', arguments: JSON.stringify({ id }) }, []])
      expect(agent.pendingInterrupts).to.deep.equal([])
      agent.addMessage({ id: randomUUID(), role: 'tool', toolCallId: call?.id ?? '', content: `sent ${id}` })
      await agent.runAgent({ tools })
    }
    expect(openCalls()).to.deep.equal([])
    expect(textOf(agent)).to.match(/bye/).and.include('get_order answered: sent B')
    agent.addMessage({ id: randomUUID(), role: 'user', content: `${tool('get_order', { id: 'C' })}\n/say not that` })
    await agent.runAgent({ tools })
    expect(openCalls()).to.have.length(1)
    agent.addMessage({ id: randomUUID(), role: 'user', content: '/say instead' })
    await agent.runAgent({ tools })
    expect(textOf(agent)).to.match(/\|instead$/)
  })

  it('a person who writes instead of answering abandons the interrupt; a client that has lost it gets it again', async () => {
    const agent = thread()
    await ask(agent, `${write('a.txt')}\n/say not that`)
    const [interrupt] = agent.pendingInterrupts
    const reloaded = new HttpAgent({
      ...{ url: `${product().url}/ag-ui`, threadId: agent.threadId },
      initialMessages: agent.messages,
    })
    await ask(reloaded, '/say instead')
    expect(reloaded.pendingInterrupts).to.deep.equal([interrupt])
    await reloaded.runAgent({ resume: [{ interruptId: interrupt?.id ?? '', status: 'cancelled' }] })
    expect(textOf(reloaded)).to.match(/\|instead$/)
    expect(reloaded.pendingInterrupts).to.deep.equal([])
    const { body } = await product().call('GET', `/sessions/${agent.threadId}/messages`)
    expect(JSON.stringify(body)).to.include('a new message came').and.include('not that')
  })

  it('a client without messages gets those of the thread, answers what waits, follows what runs, and goes on behind it', async () => {
    const agent = thread()
    const opened = async () => {
      const reloaded = new HttpAgent({ url: `${product().url}/ag-ui`, threadId: agent.threadId })
      return { reloaded, running: reloaded.runAgent() }
    }
    await ask(agent, `${LIST}\n/say one`)
    await ask(agent, `${write('a.txt')}\n/say two`)
    const { reloaded, running } = await opened()
    await running
    const said = ({ messages }: HttpAgent) => messages.map(({ role, content }) => [role, content ?? ''])
    expect(said(reloaded)).to.deep.equal(said(agent))
    expect(reloaded.pendingInterrupts).to.deep.equal(agent.pendingInterrupts)
    await resume(reloaded, { approved: true })
    const asked = ask(reloaded, '/say before\n/sleep 60000')
    await until(() => textOf(reloaded).includes('before'), { what: 'the beginning of the answer' })
    const { reloaded: third, running: followed } = await opened()
    await until(() => textOf(third).endsWith('|before'), { what: 'the beginning of the answer at another client' })
    expect(said(third)).to.deep.equal(said(reloaded))
    const { body } = await product().call('GET', `/sessions/${agent.threadId}`)
    await product().call('DELETE', `/runs/${(body as { active_run_id: string }).active_run_id}`)
    await Promise.all([asked, followed])
    await ask(third, '/say behind')
    const { body: branch } = await product().call('GET', `/sessions/${agent.threadId}/messages`)
    expect(JSON.stringify(branch)).to.match(/say one.*say two.*say before.*say behind/s)
  })

  it("a sub-agent's call interrupts, too, and what it says names it", async () => {
    const agent = thread()
    const seen: string[] = []
    agent.subscribe({
      onSubagentStartedEvent: ({ event }) => void seen.push(`started ${event.subagentRunId}`),
      onSubagentFinishedEvent: ({ event }) =>
        void seen.push(`${event.outcome?.type ?? 'ended'} ${event.subagentRunId}`),
    })
    await ask(agent, `${subAgent(write('a.txt'), '/say wrote it')}\n/say bye`)
    const id = agent.pendingInterrupts[0]?.subagentRunId
    await resume(agent, { approved: true })
    expect(seen).to.deep.equal([`started ${id}`, `suspended ${id}`, `started ${id}`, `ended ${id}`])
    const said = agent.messages.find(({ content }) => content === 'wrote it')
    expect(said).to.include({ role: 'assistant', subagentRunId: id })
    await ask(agent, '/say again')
    expect(textOf(agent)).to.match(/\|again$/)
  })

  it('a run that was cut off is repeated under its own id, once it goes on and once it is over', async () => {
    const agent = thread()
    const prompt = { id: randomUUID(), role: 'user' as const, content: '/say before\n/sleep 300\n/say after' }
    agent.setMessages([prompt])
    const cut = agent.runAgent({ runId: 'r-1' })
    await until(() => textOf(agent).includes('before'), { what: 'the beginning of the answer' })
    agent.abortRun()
    await cut.catch(() => {})
    expect(textOf(agent)).not.to.include('after')
    for (const _ of ['going on', 'over']) {
      agent.setMessages([prompt])
      await agent.runAgent({ runId: 'r-1' })
      expect(textOf(agent)).to.match(/before\|after$/)
    }
    const { body } = await product().call('GET', `/sessions/${agent.threadId}`)
    expect(body).to.include({ message_count: 2 })
  })

  it('a run that another client cancels ends as cancelled', async () => {
    const agent = thread()
    const outcomes: unknown[] = []
    agent.subscribe({ onRunFinishedEvent: ({ event }) => void outcomes.push(event.outcome) })
    const running = ask(agent, '/say before\n/sleep 60000')
    await until(() => textOf(agent).includes('before'), { what: 'the beginning of the answer' })
    const { body } = await product().call('GET', `/sessions/${agent.threadId}`)
    await product().call('DELETE', `/runs/${(body as { active_run_id: string }).active_run_id}`)
    await running
    expect(outcomes).to.deep.equal([{ type: 'cancelled' }])
  })

  it('a client that closes its connection and does not come back ends the run', async () => {
    const agent = thread()
    const running = ask(agent, '/say before\n/sleep 60000')
    await until(() => textOf(agent).includes('before'), { what: 'the beginning of the answer' })
    const { body } = await product().call('GET', `/sessions/${agent.threadId}`)
    agent.abortRun()
    await running.catch(() => {})
    const run = () => product().call('GET', `/runs/${(body as { active_run_id: string }).active_run_id}`)
    const status = async () => ((await run()).body as { status: string }).status
    await until(async () => (await status()) === 'cancelled', { what: 'the run to be cancelled' })
  })

  it('a run that fails is an error of the agent', async () => {
    const agent = thread()
    const errors: unknown[] = []
    agent.subscribe({ onRunErrorEvent: ({ event }) => void errors.push(event.code) })
    await ask(agent, '/fail provider_rejected')
    expect(errors).to.deep.equal(['provider_rejected'])
  })

  if (form === 'standalone')
    it('50 threads at a time get their own answers', async () => {
      const agents = Array.from({ length: 50 }, () => thread())
      await Promise.all(agents.map((agent, i) => ask(agent, `/say number ${i} is here`)))
      for (const [i, text] of agents.map(textOf).entries()) expect(text).to.match(new RegExp(`\\|number ${i} is here$`))
    })
}
