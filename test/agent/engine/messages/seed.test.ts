import { expect } from 'chai'
import { withStamps } from '../../../../shared/agent/engine/messages/branches.ts'
import { messagePage } from '../../../../shared/agent/engine/messages/page.ts'
import { seedHistory } from '../../../../shared/agent/engine/messages/seed.ts'
import type { AppError } from '../../../../shared/kernel/errors.ts'

type Seed = Parameters<typeof seedHistory>[0][number]

const user = (content = 'hi'): Seed => ({ role: 'user', content })
const says = (content = 'hello'): Seed => ({ role: 'assistant', content })
const calls = (...ids: string[]): Seed => ({
  role: 'assistant',
  blocks: ids.map((id) => ({ type: 'tool_use', id, tool_name: 'Read', input: { path: id } })),
})
const results = (...ids: string[]): Seed => ({
  role: 'tool',
  blocks: ids.map((id) => ({ type: 'tool_result', id, output: `of ${id}` })),
})
const says2 = (...blocks: NonNullable<Seed['blocks']>): Seed => ({ role: 'assistant', blocks })

function refusalOf(seeds: readonly Seed[]): [param: string | undefined, message: string] {
  try {
    seedHistory(seeds)
  } catch (cause) {
    const { param, message, status } = cause as AppError
    expect(status).to.equal(400)
    return [param, message]
  }
  throw new Error('accepted')
}

describe('the history that a session begins with', () => {
  it('D23.4: is what the engine itself keeps', () => {
    expect(
      seedHistory([user(), says(), user('again'), calls('a', 'b'), results('b', 'a'), says('done')]),
    ).to.deep.equal([
      { role: 'user', text: 'hi' },
      { role: 'assistant', blocks: [{ type: 'text', text: 'hello' }] },
      { role: 'user', text: 'again' },
      {
        role: 'assistant',
        blocks: [
          { type: 'tool_use', id: 'a', toolName: 'Read', input: { path: 'a' } },
          { type: 'tool_use', id: 'b', toolName: 'Read', input: { path: 'b' } },
        ],
      },
      {
        role: 'tool',
        results: [
          { id: 'a', toolName: 'Read', output: 'of a', isError: false },
          { id: 'b', toolName: 'Read', output: 'of b', isError: false },
        ],
      },
      { role: 'assistant', blocks: [{ type: 'text', text: 'done' }] },
    ])
    expect(seedHistory([])).to.deep.equal([])
  })

  it('D23.4: takes what GET /sessions/{id}/messages has listed', () => {
    const failed: Seed = { role: 'tool', blocks: [{ type: 'tool_result', id: 'a', output: 'no', is_error: true }] }
    const history = seedHistory([user(), calls('a'), failed, says()])
    const messages = withStamps(history, { seq: 4, runId: null, at: '', parent: null })
    const listed = messagePage({ sessionId: 's', messages }, { limit: 10 }).messages
    expect(seedHistory(listed)).to.deep.equal(history)
  })

  it('D23.4: leaves thinking out, and joins the texts of a user', () => {
    const two: Seed = {
      role: 'user',
      blocks: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    }
    expect(seedHistory([two, says2({ type: 'thinking', text: 'hm' }, { type: 'text', text: 'c' })])).to.deep.equal([
      { role: 'user', text: 'a\n\nb' },
      { role: 'assistant', blocks: [{ type: 'text', text: 'c' }] },
    ])
  })

  it('D23.4: roles out of turn are 400, at the message', () => {
    for (const [seeds, at] of [
      [[says()], 0],
      [[results('a')], 0],
      [[user(), says(), says()], 2],
      [[user(), results('a'), says()], 1],
      [[user(), calls('a'), says()], 2],
      [[user(), calls('a'), user()], 2],
      [[user(), says(), results('a')], 2],
      [[user(), results('a')], 1],
    ] as const) {
      const [param, message] = refusalOf(seeds)
      expect(param).to.equal(`/messages/${at}/role`)
      expect(message).to.match(/^messages\[\d\]\.role must be (user|user or assistant|tool) here: the user begins/)
    }
  })

  it('D23.4: takes turns as a session has them: texts that came while a run worked, runs that ended without an answer, and answers without words', () => {
    const silent = says2({ type: 'thinking', text: 'hm' }, { type: 'text', text: ' ' })
    const rolesOf = (...seeds: Seed[]) => seedHistory(seeds).map(({ role }) => role[0])
    expect(rolesOf(user(), user('steer'), says(), user('steer'), says()).join('')).to.equal('uuaua')
    expect(rolesOf(user(), calls('a'), results('a'), user('steer'), user('more'), says()).join('')).to.equal('uatuua')
    expect(rolesOf(user(), calls('a'), results('a'), silent, user()).join('')).to.equal('uatu')
    expect(rolesOf(user(), calls('a'), results('a')).join('')).to.equal('uat')
    expect(rolesOf(user(), says(), user('failed'), user('again')).join('')).to.equal('uauu')
  })

  it('D47.5: each file has its place in the workspace, two of one name too', () => {
    const file = (id: string) => ({ file_id: id, name: 'a.txt', media_type: 'text/plain', bytes: 1 })
    const history = seedHistory([{ ...user(), files: [file('1')] }, says(), { ...user(), files: [file('2')] }])
    const paths = history.map((message) => (message.role === 'user' ? message.files?.map(({ path }) => path) : []))
    expect(paths.flat()).to.deep.equal(['attachments/a.txt', 'attachments/a-2.txt'])
  })

  it('D23.4: a history that ends with calls of tools is 400', () => {
    expect(refusalOf([user(), calls('a')])).to.deep.equal([
      '/messages/1',
      'messages[1] cannot be the last one: add the tool message that follows it',
    ])
  })

  it('D23.4: each tool call has one result', () => {
    for (const [made, given, param] of [
      [['a', 'b'], ['a'], '/messages/2/blocks'],
      [['a'], ['a', 'a'], '/messages/2/blocks/1/id'],
      [['a'], ['b'], '/messages/2/blocks/0/id'],
    ] as const)
      expect(refusalOf([user(), calls(...made), results(...given), says()])[0]).to.equal(param)
    expect(refusalOf([user(), calls('a', 'a'), results('a'), says()])).to.deep.equal([
      '/messages/1',
      'messages[1] must be a message whose tool calls have different ids',
    ])
  })

  it('D23.4: a message has content or blocks, of the types of its role, with their fields', () => {
    const text = { type: 'text', text: 'x' } as const
    for (const [seed, param] of [
      [{ role: 'user' }, '/messages/0'],
      [{ role: 'user', content: 'x', blocks: [text] }, '/messages/0'],
      [{ role: 'user', content: ' \n' }, '/messages/0'],
      [{ role: 'user', blocks: [{ type: 'text' }] }, '/messages/0/blocks/0/text'],
      [{ role: 'user', blocks: [text, { type: 'thinking', text: 'x' }] }, '/messages/0/blocks/1/type'],
    ] as const)
      expect(refusalOf([seed as Seed, says()])[0]).to.equal(param)
    for (const [block, param] of [
      [{ type: 'text' }, '/messages/1/blocks/0/text'],
      [{ type: 'text', text: ' ' }, '/messages/1'],
      [{ type: 'thinking', text: 'only' }, '/messages/1'],
      [{ type: 'tool_result', id: 'a', output: '' }, '/messages/1/blocks/0/type'],
      [{ type: 'tool_use', tool_name: 'Read', input: {} }, '/messages/1/blocks/0/id'],
      [{ type: 'tool_use', id: 'a', input: {} }, '/messages/1/blocks/0/tool_name'],
      [{ type: 'tool_use', id: 'a', tool_name: 'Read' }, '/messages/1/blocks/0/input'],
    ] as const)
      expect(refusalOf([user(), says2(block)])[0], JSON.stringify(block)).to.equal(param)
    const without: Seed = { role: 'tool', blocks: [{ type: 'tool_result', id: 'a' }] }
    expect(refusalOf([user(), calls('a'), without, says()])[0]).to.equal('/messages/2/blocks/0/output')
    expect(refusalOf([user(), calls('a'), { role: 'tool', content: 'x' }, says()])[0]).to.equal(
      '/messages/2/blocks/0/type',
    )
  })

  it('D23.4: more than 1 MB is 400', () => {
    const half = 'é'.repeat(262_144)
    expect(seedHistory([user(half), says('x'.repeat(524_000))])).to.have.length(2)
    expect(refusalOf([user(half), says('x'.repeat(525_000))])[0]).to.equal('/messages')
  })
})
