import { expect } from 'chai'
import { knownCall, knownName } from '../../../shared/agent/engine/known-call.ts'
import { call, tool } from './tool-step-setup.ts'

const boxOf = (...names: string[]) => {
  const tools = names.map((name) => tool(name))
  return { tools, find: (name: string) => tools.find((each) => each.name === name) }
}

describe('the name of a tool as a model writes it', () => {
  const GARBLED = [
    'functions.Read',
    'function:Read',
    'tools/Read',
    'functions.Read:0',
    'commentary to=functions.Read',
    'Read<|channel|>commentary',
    '<|tool_call|>Read<|end|>',
    'Read</tool>',
    'read',
    'READ',
    ' Read',
    '`Read`',
    'Read()',
  ]
  for (const name of GARBLED) {
    it(`${JSON.stringify(name)} is the tool, when exactly one fits`, () => {
      expect(knownName(name, boxOf('Read', 'ReadAll'))).to.equal('Read')
      expect(knownName(name, boxOf('Read', 'rEAD'))).to.equal(name)
      expect(knownName(name, boxOf('Write'))).to.equal(name)
    })
  }

  it('may lack the marks within it', () => {
    expect(knownName('todo_write', boxOf('TodoWrite', 'Write'))).to.equal('TodoWrite')
    expect(knownName('mcp_notes_add', boxOf('mcp__notes__add'))).to.equal('mcp__notes__add')
    expect(knownName('mcp.a.b', boxOf('mcp__a__b', 'mcp__a_b'))).to.equal('mcp.a.b')
  })

  it('is itself when a tool has it, whatever else is like it', () => {
    expect(knownName('read', boxOf('Read', 'read'))).to.equal('read')
    expect(knownName('', boxOf('Read'))).to.equal('')
    expect(knownName('<|x|>', boxOf('Read'))).to.equal('<|x|>')
  })
})

describe('the input of a tool call as a model writes it', () => {
  const SCHEMA = {
    type: 'object',
    $defs: { edit: { type: 'object', properties: { lines: { type: 'array', items: { type: 'integer' } } } } },
    properties: {
      path: { type: 'string' },
      free: {},
      list: { type: 'array', items: { $ref: '#/$defs/edit' } },
      maybe: { anyOf: [{ type: 'array' }, { type: 'null' }] },
      either: { oneOf: [{ type: 'string' }, { type: 'object' }] },
      edit: { $ref: '#/$defs/edit' },
    },
    additionalProperties: { type: ['object', 'null'] },
  }
  const tools = [{ ...tool('Edit'), inputSchema: SCHEMA }]
  const box = { tools, find: (name: string) => tools.find((each) => each.name === name) }
  const read = (input: unknown, wrap = (json: string) => json) => {
    const known = knownCall(call('a', 'Edit', wrap(JSON.stringify(input))), box)
    return { input: JSON.parse(known.input), isReread: known.isReread }
  }

  it('may be JSON text of JSON', () => {
    expect(read({ path: 'a' }, JSON.stringify)).to.deep.equal({ input: { path: 'a' }, isReread: true })
  })

  it('may have arrays and objects as JSON text, at any depth, where its schema takes no text', () => {
    const lines = JSON.stringify([1, 2])
    const given = {
      list: JSON.stringify([JSON.stringify({ lines })]),
      maybe: '[]',
      edit: { lines },
      other: '{"x":"[]"}',
    }
    const input = { list: [{ lines: [1, 2] }], maybe: [], edit: { lines: [1, 2] }, other: { x: '[]' } }
    expect(read(given)).to.deep.equal({ input, isReread: true })
  })

  it('keeps JSON text where its schema takes a text, or anything', () => {
    const given = { path: '[1]', free: '{"a":1}', either: '{"a":1}', edit: { lines: [1] } }
    expect(read(given)).to.deep.equal({ input: given, isReread: undefined })
  })

  it('keeps a text that is no JSON of the type that is wanted, and remembers that one stands there', () => {
    for (const list of ['so', '{}', '7', '[1']) {
      expect(read({ list })).to.deep.equal({ input: { list }, isReread: true })
    }
  })

  it('stays as it is when it is no object, or when no tool is known', () => {
    for (const input of ['{"path": ', '"so"', '[1]', '']) {
      expect(knownCall(call('a', 'Edit', input), box)).to.deep.equal(call('a', 'Edit', input))
    }
    expect(knownCall(call('a', 'Other', '"{}"'), box)).to.deep.equal(call('a', 'Other', '"{}"'))
  })
})
