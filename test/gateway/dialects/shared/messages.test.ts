import { expect } from 'chai'
import { Fields } from '../../../../services/gateway/dialects/shared/fields.ts'
import { placeInList, readNewMessage } from '../../../../services/gateway/dialects/shared/messages.ts'

const RUN = `run_${'0f'.repeat(16)}`
const listOf = (messages: object[]) => new Fields({ messages }).objects('messages')
const user = (id: string, content: unknown = id) => ({ id, role: 'user', content })
const image = [{ type: 'image', source: {} }]

describe('a list of messages that a client sends whole', () => {
  it('D38: the ids before the new message name its place, those of an answer by its run', () => {
    const messages = [user('u1'), { id: `${RUN}-7`, role: 'assistant', content: 'a' }, user('u2')]
    expect(placeInList(listOf(messages), { isList: true })).to.deep.equal({ id: 'u2', path: ['u1', RUN], texts: {} })
    expect(placeInList(listOf([user('u1')]), { isList: true })).to.deep.equal({ id: 'u1', path: [], texts: {} })
    const unanswered = [...messages, user('u3', [{ type: 'text', text: ' said ' }]), user('u4')]
    expect(placeInList(listOf(unanswered), { isList: true }).texts).to.deep.equal({ u2: 'u2', u3: 'said' })
  })

  it('D38: a list without ids names no place, and neither does a message alone', () => {
    const messages = [{ role: 'user' }, { role: 'assistant' }, { role: 'user' }]
    expect(placeInList(listOf(messages), { isList: true })).to.deep.equal({})
    expect(placeInList(listOf([user('u1')]), { isList: false })).to.deep.equal({ id: 'u1' })
    expect(placeInList(listOf([{ ...user('u1'), id: 'x'.repeat(300) }]), { isList: true })).to.deep.equal({})
  })

  it('D38.1b: only the new message is checked: what was refused before it is left out, and what the user has written right before it is known', () => {
    const { prompt, unanswered, seed } = readNewMessage(
      listOf([
        user('u1', image),
        { id: 'a', role: 'assistant', content: 'yes' },
        user('u2'),
        user('u3', image),
        user('u4'),
      ]),
      '/messages',
    )
    expect([prompt, unanswered, seed()]).to.deep.equal(['u4', ['u2'], []])
    expect(() => readNewMessage(listOf([user('u1', image)]), '/messages')).to.throw('source.type must be a string')
    expect(() => readNewMessage(listOf([]), '/messages')).to.throw('must end with a text of the user')
  })

  it('D38.1c: the history that a branch begins with keeps the ids of its messages', () => {
    const messages = [user('u1'), { id: `${RUN}-7`, role: 'assistant', content: 'a' }, user('u2')]
    expect(readNewMessage(listOf(messages), '/messages').seed()).to.deep.equal([
      { role: 'user', content: 'u1', client: 'u1' },
      { role: 'assistant', content: 'a', client: RUN },
    ])
  })
})
