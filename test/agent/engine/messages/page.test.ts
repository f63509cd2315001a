import { expect } from 'chai'
import { messagePage } from '../../../../shared/agent/engine/messages/page.ts'
import type { Message } from '../../../../shared/agent/providers/port.ts'

const AT = '2026-11-22T09:30:00.000Z'
const stamp = (seq: number) => ({
  ...{ seq, runId: 'run_1', at: AT },
  ...{ id: `msg_${seq}`, parent: seq > 1 ? `msg_${seq - 1}` : null },
})
const user = (seq: number, text = `m${seq}`): Message => ({ role: 'user', text, stamp: stamp(seq) })
const from = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => user(first + i))

const textsOf = ({ messages }: ReturnType<typeof messagePage>) =>
  messages.map(({ blocks: [block] }) => (block && 'text' in block ? block.text : undefined))

/** Reads all pages of a history that `historyOf` may change between two of them. */
function readAll(historyOf: (page: number) => readonly Message[], limit: number): unknown[][] {
  const pages: unknown[][] = []
  let cursor: string | null = null
  do {
    const request: { limit: number; cursor?: string } = { limit, ...(cursor !== null && { cursor }) }
    const page = messagePage({ sessionId: 's1', messages: historyOf(pages.length) }, request)
    pages.push(textsOf(page))
    cursor = page.next_cursor
  } while (cursor !== null)
  return pages
}

describe('a page of messages', () => {
  it('of one run holds what it has added, and nothing else', () => {
    const other: Message = { role: 'user', text: 'other', stamp: { ...stamp(2), runId: 'run_2' } }
    const messages = [user(1), other, user(3)]
    const page = messagePage({ sessionId: 's1', messages }, { limit: 9, runId: 'run_2' })
    expect([textsOf(page), page.next_cursor]).to.deep.equal([['other'], null])
  })

  it('D23.3: blocks have the fields of the events, without files and signatures', () => {
    const messages: Message[] = [
      user(1, 'look'),
      {
        role: 'assistant',
        stamp: stamp(2),
        blocks: [
          { type: 'thinking', text: 'hm', meta: { anthropic: { signature: 'secret' } } },
          { type: 'text', text: 'I look' },
          { type: 'tool_use', id: 'c1', toolName: 'Read', input: { path: 'a.png' }, meta: { chat: { x: 1 } } },
        ],
      },
      {
        role: 'tool',
        stamp: stamp(3),
        results: [
          {
            id: 'c1',
            toolName: 'Read',
            output: '[a.png]',
            isError: false,
            attachments: [{ name: 'a.png', mediaType: 'image/png', base64: 'AAAA' }],
          },
        ],
      },
    ]
    const at = { run_id: 'run_1', at: AT }
    expect(messagePage({ sessionId: 's1', messages }, { limit: 10 })).to.deep.equal({
      messages: [
        { id: 'msg_1', parent_id: null, role: 'user', blocks: [{ type: 'text', text: 'look' }], ...at },
        {
          ...{ id: 'msg_2', parent_id: 'msg_1' },
          role: 'assistant',
          blocks: [
            { type: 'thinking', text: 'hm' },
            { type: 'text', text: 'I look' },
            { type: 'tool_use', id: 'c1', tool_name: 'Read', input: { path: 'a.png' } },
          ],
          ...at,
        },
        {
          ...{ id: 'msg_3', parent_id: 'msg_2' },
          role: 'tool',
          blocks: [{ type: 'tool_result', id: 'c1', tool_name: 'Read', output: '[a.png]', is_error: false }],
          ...at,
        },
      ],
      branches: ['msg_3'],
      next_cursor: null,
    })
  })

  it('has the oldest messages first, and the last page no cursor', () => {
    expect(readAll(() => from(1, 5), 2)).to.deep.equal([['m1', 'm2'], ['m3', 'm4'], ['m5']])
    expect(readAll(() => from(1, 4), 2)).to.deep.equal([
      ['m1', 'm2'],
      ['m3', 'm4'],
    ])
    expect(readAll(() => [], 2)).to.deep.equal([[]])
  })

  it('D23.3: a reader between two pages misses nothing when what it has read is compacted', () => {
    const compacted = [user(3, 'summary'), ...from(4, 6)]
    expect(readAll((page) => (page === 0 ? from(1, 5) : compacted), 3)).to.deep.equal([
      ['m1', 'm2', 'm3'],
      ['m4', 'm5', 'm6'],
    ])
    expect(readAll((page) => (page === 0 ? from(1, 5) : [user(5, 'summary'), user(6)]), 3)).to.deep.equal([
      ['m1', 'm2', 'm3'],
      ['summary', 'm6'],
    ])
  })

  it('D23.3: ends before 128 KB are exceeded, and a larger message has a page of its own', () => {
    const large = (seq: number, bytes: number) => user(seq, 'x'.repeat(bytes))
    const history = [large(1, 70_000), large(2, 60_000), large(3, 10), large(4, 300_000), large(5, 10)]
    const lengths = readAll(() => history, 10).map((page) => page.map((text) => String(text).length))
    expect(lengths).to.deep.equal([[70_000, 60_000, 10], [300_000], [10]])
  })

  it('a cursor of another session or list is 400', () => {
    const { next_cursor: cursor } = messagePage({ sessionId: 's1', messages: from(1, 3) }, { limit: 1 })
    const encode = (values: unknown) => Buffer.from(JSON.stringify(values)).toString('base64url')
    const read = (sessionId: string, given: string) =>
      messagePage({ sessionId, messages: from(1, 3) }, { limit: 1, cursor: given })
    expect(textsOf(read('s1', String(cursor)))).to.deep.equal(['m2'])
    expect(() => read('s2', String(cursor))).to.throw('cursor must be one that this list returned')
    for (const wrong of [['s1', -1], ['s1', 1.5], ['s1', '1'], ['s1'], [1, 's1']])
      expect(() => read('s1', encode(wrong)), String(wrong)).to.throw('cursor must be one that this list returned')
  })
})
