import { expect } from 'chai'
import { Conversation } from '../../../../shared/agent/engine/conversation.ts'
import type { Message } from '../../../../shared/agent/providers/port.ts'

const user = (text: string): Message => ({ role: 'user', text })
const says = (text: string): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })
const seqs = ({ messages }: Conversation) => messages.map(({ stamp }) => stamp?.seq)

describe('the stamps of messages', () => {
  it('a conversation without a source of run ids leaves its messages as they are', () => {
    const conversation = new Conversation({ messages: [user('a')] })
    conversation.append(says('b'))
    expect(conversation.messages).to.deep.equal([user('a'), says('b')])
  })

  it('D23.3: each message has the run that added it, the time, and a number that rises', () => {
    let run: string | null = null
    const conversation = new Conversation({ messages: [user('a'), says('b')] }, { runId: () => run })
    run = 'run_1'
    conversation.append(user('c'), says('d'))
    run = 'run_2'
    conversation.append(user('e'))
    expect(conversation.messages.map(({ stamp }) => [stamp?.seq, stamp?.runId])).to.deep.equal([
      [1, null],
      [2, null],
      [3, 'run_1'],
      [4, 'run_1'],
      [5, 'run_2'],
    ])
    for (const { stamp } of conversation.messages)
      expect(Date.parse(String(stamp?.at))).to.be.closeTo(Date.now(), 5_000)
  })

  it('D23.3: a summary has the number before the first kept message, and later messages go on behind the last', () => {
    const conversation = new Conversation({ messages: [] }, { runId: () => 'run_1' })
    conversation.append(user('a'), says('b'), user('c'), says('d'))
    conversation.compact([user('summary'), ...conversation.messages.slice(2)])
    expect(seqs(conversation)).to.deep.equal([2, 3, 4])
    conversation.append(user('e'))
    conversation.compact([user('all of it')])
    conversation.append(says('f'))
    expect(seqs(conversation)).to.deep.equal([5, 6])
  })

  it('a history that is continued elsewhere keeps its stamps', () => {
    const first = new Conversation({ messages: [] }, { runId: () => 'run_1' })
    first.append(user('a'), says('b'))
    const other = new Conversation({ messages: first.messages }, { runId: () => 'run_2' })
    other.append(user('c'))
    expect(other.messages.slice(0, 2)).to.deep.equal(first.messages)
    expect(seqs(other)).to.deep.equal([1, 2, 3])
  })
})
