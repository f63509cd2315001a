import { randomUUID } from 'node:crypto'
import { HttpAgent } from '@ag-ui/client'
import { expect } from 'chai'
import { type RunningProduct, agent as subAgent, tool, write } from './dialect-product.ts'

const LIST = tool('TodoWrite', { todos: [] })

/** The package `@ag-ui/client`, unmodified: it checks the order of events and builds the messages. */
export function agUiTests(product: RunningProduct): void {
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
        reason: 'tool_call',
        message: 'Write 5 bytes to the file a.txt.',
      })
      await resume(agent, payload)
      expect(textOf(agent)).to.match(wanted)
      expect(agent.pendingInterrupts).to.deep.equal([])
    }
  })

  it("a sub-agent's call interrupts, too", async () => {
    const agent = thread()
    await ask(agent, `${subAgent(write('a.txt'), '/say wrote it')}\n/say bye`)
    await resume(agent, { approved: true })
    expect(textOf(agent)).to.include('wrote it')
  })

  it('a run that fails is an error of the agent', async () => {
    const agent = thread()
    const errors: unknown[] = []
    agent.subscribe({ onRunErrorEvent: ({ event }) => void errors.push(event.code) })
    await ask(agent, '/fail provider_rejected')
    expect(errors).to.deep.equal(['provider_rejected'])
  })
}
