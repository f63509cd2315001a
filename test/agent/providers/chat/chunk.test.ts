// Tests chunk.ts, reasoning.ts and think-tags.ts by themselves: how chunks of loose servers are read.
import { expect } from 'chai'
import { contentPieces, parseChunk } from '../../../../shared/agent/providers/chat/chunk.ts'
import { ReasoningDetails } from '../../../../shared/agent/providers/chat/reasoning.ts'
import { ThinkTags } from '../../../../shared/agent/providers/chat/think-tags.ts'

describe('a chunk of a chat completion', () => {
  const CHUNKS: [json: string, read: object | undefined][] = [
    ['{"choices":[{}]}', { choices: [{}] }],
    ['{"choices":null,"usage":{}}', { choices: [], usage: {}, error: undefined }],
    ['{"object":"chat.completion.chunk","message":7}', { choices: [], error: undefined }],
    ['{"error":"no","message":"m"}', { choices: [], error: 'no' }],
    ['{"choices":{}}', undefined],
    ['[]', undefined],
    ['oops', undefined],
  ]
  for (const [json, read] of CHUNKS)
    it(`is read of ${json}`, () => {
      if (read === undefined) expect(parseChunk(json)).to.equal(undefined)
      else expect(parseChunk(json)).to.deep.include(read)
    })

  for (const error of [{ object: 'error' }, { detail: [{}] }, { message: 'm' }, { msg: 'm' }])
    it(`D4.8: that is ${JSON.stringify(error)} is an error without the field`, () => {
      expect(parseChunk(JSON.stringify(error))).to.deep.equal({ ...error, choices: [], error })
    })

  it('may have its content in parts, of which those of other types are left out', () => {
    const text = { type: 'text', text: 'a' }
    const parts = [text, { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }, 7] }]
    const others = [null, { type: 'image', text: 'x' }, { type: 'text', text: 7 }, { type: 'thinking', thinking: 'x' }]
    expect(contentPieces([...others, ...parts, { type: 'other', thinking: [text] }])).to.deep.equal([
      { kind: 'text', text: 'a' },
      { kind: 'thinking', text: 'hm' },
    ])
  })
})

describe('the details of reasoning', () => {
  const ROWS: [what: string, added: unknown[], all: object[], texts: string[]][] = [
    [
      'of one block are merged',
      [[{ type: 'a', text: 'x', id: 1 }], [{ type: 'a', text: 'y', id: null }]],
      [{ type: 'a', text: 'xy', id: 1 }],
      ['x', 'y'],
    ],
    [
      'may begin without a text',
      [[{ type: 'a', id: 1 }], [{ type: 'a', summary: 'y' }]],
      [{ type: 'a', id: 1, summary: 'y' }],
      ['', 'y'],
    ],
    [
      'of two types stand apart',
      [
        [
          { type: 'a', index: 0 },
          { type: 'b', index: 0 },
        ],
      ],
      [
        { type: 'a', index: 0 },
        { type: 'b', index: 0 },
      ],
      [''],
    ],
    [
      'of two indexes stand apart',
      [
        [
          { type: 'a', index: 0 },
          { type: 'a', index: 1 },
        ],
      ],
      [
        { type: 'a', index: 0 },
        { type: 'a', index: 1 },
      ],
      [''],
    ],
    [
      'with data stand apart',
      [[{ type: 'a' }, { type: 'a', data: 'x' }]],
      [{ type: 'a' }, { type: 'a', data: 'x' }],
      [''],
    ],
    [
      'are objects alone',
      [[7, null], 'x', [{ type: 'a', text: 7, summary: 's' }]],
      [{ type: 'a', text: 7, summary: 's' }],
      ['', '', 's'],
    ],
  ]
  for (const [what, added, all, texts] of ROWS)
    it(what, () => {
      const details = new ReasoningDetails()
      expect(added.map((each) => details.add(each))).to.deep.equal(texts)
      expect(details.all).to.deep.equal(all)
    })
})

describe('a thought in tags', () => {
  it('is shown as it comes, but for what may become the closing tag', () => {
    const tags = new ThinkTags()
    expect(tags.push('<think>ab</thi')).to.deep.equal([{ kind: 'thinking', text: 'ab' }])
    expect(tags.push('ck</think')).to.deep.equal([{ kind: 'thinking', text: '</thick' }])
    expect(tags.push('> c')).to.deep.equal([{ kind: 'text', text: 'c' }])
    expect([tags.isDone, tags.flush()]).to.deep.equal([true, []])
  })
})
