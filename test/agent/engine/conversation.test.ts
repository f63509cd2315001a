import { expect } from 'chai'
import { Conversation } from '../../../shared/agent/engine/conversation.ts'
import type { Message } from '../../../shared/agent/providers/port.ts'
import { gives, says, user } from './context/setup.ts'

describe('a conversation', () => {
  it('is empty at first', () => {
    const conversation = new Conversation()
    expect([conversation.messages, conversation.messageCount, conversation.chars]).to.deep.equal([[], 0, 0])
    expect(conversation.measured).to.equal(undefined)
  })

  it('D5.7: counts the user’s and the assistant’s messages, and the characters of all', () => {
    const conversation = new Conversation({ messages: [user('12'), says('345')] })
    conversation.append(gives('1', '6789'), says('0'))
    expect(conversation.messages).to.have.length(4)
    expect([conversation.messageCount, conversation.chars]).to.deep.equal([3, 10])
  })

  it('does not change a list of messages that was read before', () => {
    const conversation = new Conversation()
    const before = conversation.messages
    conversation.append(user('hi'))
    expect(before).to.deep.equal([])
  })

  it('D5.7: keeps its count and loses characters when it is compacted', () => {
    const conversation = new Conversation({ messages: [user('12345'), says('67890')] })
    conversation.compact([user('1')])
    expect([conversation.messages.length, conversation.messageCount, conversation.chars]).to.deep.equal([1, 2, 1])
  })

  it('remembers the provider’s count with the size it had then', () => {
    const conversation = new Conversation({ messages: [user('12345')] })
    const measured = { tokens: 3, chars: 5, fixedChars: 0, model: 'm', compactions: 0 }
    conversation.measure(measured)
    conversation.append(says('67890'))
    expect(conversation.measured).to.deep.equal(measured)
  })

  it('tells its size in bytes, as JSON, at first and whenever it has changed', () => {
    const sizes: number[] = []
    const bytesOf = (...messages: Message[]) => Buffer.byteLength(messages.map((each) => JSON.stringify(each)).join(''))
    const conversation = new Conversation({ messages: [user('ä')] }, { onResize: (bytes) => sizes.push(bytes) })
    conversation.append(says('ö'), gives('1', 'x'.repeat(100_000)))
    const all = [user('ä'), says('ö'), gives('1', 'x'.repeat(100_000))]
    conversation.compact([user('short')])
    expect(sizes).to.deep.equal([bytesOf(user('ä')), bytesOf(...all), bytesOf(user('short'))])
    expect([conversation.bytes, conversation.compactions]).to.deep.equal([sizes[2], 1])
  })

  it('numbers its messages on, when a run is named, also behind a shorter history', () => {
    const conversation = new Conversation({ messages: [user('a')] }, { runId: () => 'run_1' })
    const numbers = () => conversation.messages.map(({ stamp }) => stamp?.seq)
    conversation.append(says('b'), user('c'))
    expect(numbers()).to.deep.equal([1, 2, 3])
    conversation.compact(conversation.messages.slice(2))
    conversation.append(says('d'))
    expect(numbers()).to.deep.equal([3, 4])
    expect(new Conversation({ messages: [user('a')] }).messages).to.deep.equal([user('a')])
  })
})
