import { expect } from 'chai'
import { ToolCalls } from '../../../../shared/agent/providers/chat/tool-calls.ts'

/** The calls that these pieces make: the name and the input of each. */
function assembled(...pieces: unknown[]) {
  const calls = new ToolCalls('models.test')
  for (const piece of pieces) calls.add(piece)
  return calls.end()?.map((part) => (part.type === 'tool_call' ? [part.toolName, part.input] : []))
}

const piece = (name: string | undefined, input: unknown, fields: object = {}) => ({
  ...fields,
  function: { name, arguments: input },
})

describe('the pieces of tool calls', () => {
  it('of one index are one call, unless another name or a complete input shows that a new one begins', () => {
    const at = (name: string | undefined, input: string) => piece(name, input, { index: 0 })
    expect(assembled(at('Read', '{"a":'), at(undefined, '1}'))).to.deep.equal([['Read', '{"a":1}']])
    expect(assembled(at('Read', '{"a":'), at('Read', '1}'))).to.deep.equal([['Read', '{"a":1}']])
    expect(assembled(at('Read', '{}'), at('Read', '{}'))).to.deep.equal([
      ['Read', '{}'],
      ['Read', '{}'],
    ])
    expect(assembled(at('Read', ''), at('Write', ''))).to.deep.equal([
      ['Read', ''],
      ['Write', ''],
    ])
    expect(assembled(piece('Read', '{"a":'), piece('Read', '1}'))).to.deep.equal([['Read', '{"a":1}']])
  })

  const OF_ONE_INDEX: [what: string, pieces: [id: string, input: string][], inputs: string[]][] = [
    [
      'continue a call where they go on with its input',
      [
        ['a', '{"a":'],
        ['b', '1}'],
      ],
      ['{"a":1}'],
    ],
    [
      'continue it within a list, too',
      [
        ['a', '{"a":['],
        ['b', '1,{"c":2}]}'],
      ],
      ['{"a":[1,{"c":2}]}'],
    ],
    [
      'without an id continue it as well',
      [
        ['a', '{"a":'],
        ['', '{"b":1}}'],
      ],
      ['{"a":{"b":1}}'],
    ],
    [
      'begin another call where the input begins, too',
      [
        ['a', '{"a":1'],
        ['b', '\n {"b":1}'],
      ],
      ['{"a":1', '\n {"b":1}'],
    ],
    [
      'begin another one behind a whole input',
      [
        ['a', '{"a":1}'],
        ['b', ''],
      ],
      ['{"a":1}', ''],
    ],
    [
      'of the same id replace the input',
      [
        ['a', '{"a":1}'],
        ['a', '{"a":1,"b":2}'],
      ],
      ['{"a":1,"b":2}'],
    ],
  ]
  for (const [what, pieces, inputs] of OF_ONE_INDEX)
    it(`of one index and another id ${what}`, () => {
      const given = pieces.map(([id, input]) => piece('Read', input, { index: 0, id }))
      expect(assembled(...given)).to.deep.equal(inputs.map((input) => ['Read', input]))
    })

  const SAME: [what: string, ...pieces: object[]][] = [
    [
      'in two equal pieces',
      piece('Read', '{"a":1}', { index: 0, id: 'c' }),
      piece('Read', '{"a":1}', { index: 0, id: 'c' }),
    ],
    [
      'at two indexes',
      piece('Read', '{"a":1}', { index: 0, id: 'c' }),
      piece('Read', '{ "a": 1 }', { index: 1, id: 'c' }),
    ],
    [
      'at two indexes, of which the second has the input',
      piece('Read', '', { index: 0, id: 'c' }),
      piece(undefined, '{"a":', { index: 1, id: 'c' }),
      piece(undefined, '1}', { index: 1 }),
    ],
    [
      'in pieces, and once more as a whole in the last chunk, without an index',
      piece('Read', '{"a":', { index: 0, id: 'c' }),
      piece(undefined, '1}', { index: 0 }),
      piece('Read', { a: 1 }, { id: 'c' }),
    ],
    ['without indexes', piece('Read', '{"a":1}', { id: 'c' }), piece('Read', '{"a":1}', { id: 'c' })],
    [
      'at two indexes, of which each has a half of the input',
      piece('Read', '{"a":', { index: 0, id: 'c' }),
      piece('Read', '1}', { index: 1, id: 'c' }),
    ],
  ]
  for (const [what, ...pieces] of SAME) {
    it(`of one id are one call ${what}`, () => {
      expect(assembled(...pieces)).to.deep.equal([['Read', '{"a":1}']])
    })
  }

  it('of one id are several calls where their names or their whole inputs differ, as where a server gives every call one id', () => {
    const [one, two] = [
      piece('Read', '{"a":1}', { index: 0, id: 'c' }),
      piece('Read', '{"a":2}', { index: 1, id: 'c' }),
    ]
    const alike = [{ id: 'c' }, { id: 'c' }].map((fields, i) => piece('Read', `{"a":${i + 1}}`, fields))
    expect(assembled(...alike)).to.have.length(2)
    expect(assembled(one, two, piece('Glob', '{"a":2}', { index: 2, id: 'c' }))).to.deep.equal([
      ['Read', '{"a":1}'],
      ['Read', '{"a":2}'],
      ['Glob', '{"a":2}'],
    ])
  })

  it('without an index belong to the call of their id, or to the last one when they name neither', () => {
    for (const index of [undefined, null, '0']) {
      const at = (name: string | undefined, input: string, id?: string) => piece(name, input, { index, id })
      const pieces = [at('Read', '{"a":', 'a'), at('Read', '{"b":', 'b'), at(undefined, '2}'), at(undefined, '1}', 'a')]
      expect(assembled(...pieces)).to.deep.equal([
        ['Read', '{"a":1}'],
        ['Read', '{"b":2}'],
      ])
    }
  })

  it('are in the order of their indexes where all have one, and else in the order in which they came', () => {
    const [one, two] = [piece('One', '{}', { index: 1 }), piece('Two', '{}', { index: 0 })]
    expect(assembled(one, two)).to.deep.equal([
      ['Two', '{}'],
      ['One', '{}'],
    ])
    expect(assembled(one, two, piece('Three', '{}', { id: 'c' }))).to.deep.equal([
      ['One', '{}'],
      ['Two', '{}'],
      ['Three', '{}'],
    ])
  })

  it('may have their input as an object, and a piece of nothing is no call', () => {
    expect(assembled(piece('Read', { a: 1 }), null, 7, {}, piece(' ', ''))).to.deep.equal([['Read', '{"a":1}']])
    const nothing = { index: 3, extra_content: { google: null } }
    expect(assembled(nothing, piece('Read', '{}', { index: 0 }))).to.deep.equal([['Read', '{}']])
  })

  it('with an input and no name cannot be a call', () => {
    expect(assembled(piece('Read', '{}'), piece(undefined, '{}', { index: 3 }))).to.equal(undefined)
  })

  it('are complete when each call names its tool and has JSON as its input', () => {
    const calls = new ToolCalls('models.test')
    expect(calls.areComplete).to.equal(true)
    calls.add(piece('Read', '{"a":'))
    expect(calls.areComplete).to.equal(false)
    calls.add(piece(undefined, '1}'))
    expect(calls.areComplete).to.equal(true)
    calls.add(piece(undefined, '{}', { index: 7 }))
    expect(calls.areComplete).to.equal(false)
  })

  it('keep the id of the server once, and the signature for the server that sent it', () => {
    const calls = new ToolCalls('models.test')
    const signed = { extra_content: { google: { thought_signature: 's' } } }
    calls.add(piece('Read', '{}', { id: 'a', ...signed }))
    calls.add(piece('Write', '{}', { id: 'a' }))
    for (const index of [1, 2]) calls.add(piece('Glob', '{}', { index, id: 'g', ...(index === 2 && signed) }))
    const [first, second, third] = calls.end() ?? []
    expect(third).to.have.nested.property('meta.chat.thought_signature', 's')
    expect(first).to.deep.include({ id: 'a', meta: { chat: { origin: 'models.test', thought_signature: 's' } } })
    expect(second)
      .to.have.property('id')
      .that.matches(/^call_[0-9a-f]{32}$/)
    expect(second).to.not.have.property('meta')
  })
})
