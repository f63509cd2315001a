import { expect } from 'chai'
import fc from 'fast-check'
import { Conversation } from '../../../../shared/agent/engine/conversation.ts'
import { branchEnds, findNamed } from '../../../../shared/agent/engine/messages/branches.ts'
import type { Message } from '../../../../shared/agent/providers/port.ts'

const user = (text: string): Message => ({ role: 'user', text })
const says = (text: string): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })
const textOf = (message: Message) =>
  message.role === 'user' ? message.text : message.role === 'assistant' ? JSON.stringify(message.blocks) : ''
const textsOf = (messages: readonly Message[]) => messages.map(textOf)
const idOf = (message: Message | undefined) => message?.stamp?.id ?? null

const NUM_RUNS = 500

describe('the branches of a conversation', () => {
  const talk = () => {
    const conversation = new Conversation({ messages: [] }, { runId: () => 'run_1' })
    conversation.append(user('a'), says('b'), user('c'), says('d'))
    return conversation
  }

  it('D23.5a: a message continues the branch that it is put behind, and the others stay', () => {
    const conversation = talk()
    const [, b] = conversation.messages
    conversation.prepare({ after: idOf(b) })
    conversation.append(user('e'), says('f'))
    expect(textsOf(conversation.messages)).to.deep.equal(textsOf([user('a'), says('b'), user('e'), says('f')]))
    expect(conversation.all).to.have.length(6)
    conversation.prepare({ after: null })
    conversation.append(user('g'))
    expect(textsOf(conversation.messages)).to.deep.equal(['g'])
    expect(branchEnds(conversation.all)).to.have.length(3)
    expect(branchEnds(conversation.all).at(-1)).to.equal(idOf(conversation.messages.at(-1)))
  })

  it('D23.5b: the size is that of all branches, the characters are those of the one that the model reads', () => {
    const sizes: number[] = []
    const conversation = new Conversation({ messages: [] }, { runId: () => 'run_1', onResize: (n) => sizes.push(n) })
    conversation.append(user('12345'), says('67890'))
    conversation.prepare({ after: null })
    conversation.append(user('123'))
    expect(conversation.chars).to.equal(3)
    expect(sizes.at(-1)).to.equal(
      conversation.all.reduce((bytes, message) => bytes + Buffer.byteLength(JSON.stringify(message)), 0),
    )
  })

  it('D38: a message is found by its id, the id of its client, of which the newest with its text or else the newest counts, or as the last one of its run', () => {
    const conversation = talk()
    conversation.prepare({ after: null, client: 'm-1' })
    conversation.append(user('first'))
    conversation.prepare({ after: null, client: 'm-1' })
    conversation.append(user('second'))
    const { all } = conversation
    expect(textsOf([findNamed(all, 'm-1') as Message])).to.deep.equal(['second'])
    expect(textsOf([findNamed(all, 'm-1', 'first') as Message])).to.deep.equal(['first'])
    expect(textsOf([findNamed(all, 'm-1', 'third') as Message])).to.deep.equal(['second'])
    expect(findNamed(all, String(idOf(all[1])))).to.equal(all[1])
    expect(findNamed(all, 'run_1')).to.equal(all.at(-1))
    expect(findNamed(all, 'run_2')).to.equal(undefined)
  })

  it('D5.6: a compacted branch begins with its summary, and a branch from before keeps what it follows', () => {
    const conversation = talk()
    const [, b, c] = conversation.messages
    conversation.prepare({ after: idOf(b) })
    conversation.append(user('other'))
    const other = idOf(conversation.messages.at(-1))
    conversation.prepare({ after: idOf(conversation.all[3]) })
    conversation.append(user('e'))
    conversation.compact([user('summary'), ...conversation.messages.slice(3)])
    expect(textsOf(conversation.messages)).to.deep.equal(textsOf([user('summary'), says('d'), user('e')]))
    expect(conversation.all, 'only this branch had c').not.to.include(c)
    conversation.prepare({ after: other })
    expect(textsOf(conversation.messages)).to.deep.equal(textsOf([user('a'), says('b'), user('other')]))
  })

  it('a history that an older release has stored is one branch', () => {
    const at = { runId: 'run_1', at: '' }
    const stored = [user('a'), says('b')].map((message, i) => ({ ...message, stamp: { seq: i + 1, ...at } }))
    const read = () => new Conversation({ messages: stored as Message[] }, { runId: () => 'run_2' })
    const conversation = read()
    conversation.append(user('c'))
    const again = new Conversation(
      { messages: [...(stored as Message[]), ...conversation.all.slice(2)] },
      { runId: () => 'run_3' },
    )
    expect(textsOf(again.messages)).to.deep.equal(textsOf([user('a'), says('b'), user('c')]))
    expect(again.all).to.deep.equal(conversation.all)
  })

  it(`D23.5a: after any ${NUM_RUNS} series of messages, moves and compactions each branch holds what was said in it, also when it is read again`, () => {
    const act = fc.record({ kind: fc.constantFrom('say', 'move', 'compact'), pick: fc.nat() })
    fc.assert(
      fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
        let conversation = new Conversation({ messages: [] }, { runId: () => 'run_1' })
        /** The texts of each branch that ends with a message, by its id. */
        const told = new Map<string | null, string[]>([[null, []]])
        let head: string | null = null
        for (const [i, { kind, pick }] of acts.entries()) {
          const ends = [null, ...branchEnds(conversation.all)]
          if (kind === 'move') {
            head = ends[pick % ends.length] ?? null
            conversation.prepare({ after: head })
          }
          if (kind === 'compact' && conversation.messages.length > 2) {
            conversation.compact([user(`s${i}`), ...conversation.messages.slice(-1)])
            told.set(head, [`s${i}`, ...(told.get(head) ?? []).slice(-1)])
          }
          const before: string[] = told.get(head) ?? []
          conversation.append(user(`t${i}`))
          head = idOf(conversation.messages.at(-1))
          told.set(head, [...before, `t${i}`])
          conversation = new Conversation({ messages: conversation.all }, { runId: () => 'run_1' })
          expect(textsOf(conversation.messages)).to.deep.equal(told.get(head))
        }
        for (const end of branchEnds(conversation.all)) {
          conversation.prepare({ after: end })
          expect(textsOf(conversation.messages)).to.deep.equal(told.get(end))
        }
      }),
      { numRuns: NUM_RUNS },
    )
  })
})
