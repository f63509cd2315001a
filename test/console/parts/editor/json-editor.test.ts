import { expect } from 'chai'
import {
  breakLine,
  closeBracket,
  type Edit,
  indent,
  outdent,
  type Selected,
} from '../../../../services/console/parts/editor/editing.ts'
import { mistakeIn, placeOf } from '../../../../services/console/parts/editor/json-places.ts'

describe('the places of a JSON text', () => {
  it('are those of the values that pointers name, or of what holds them', () => {
    const text = '{"a/b": [1, {"~": true}]}'
    const at = (pointer: string) => {
      const { from, to } = placeOf(text, pointer) ?? { from: 0, to: 0 }
      return text.slice(from, to)
    }
    expect([at('/a~1b/1/~0'), at('/a~1b/1/missing'), at('')]).to.deep.equal(['true', '{"~": true}', text])
  })

  it('tell where a text stops being JSON, for exactly the texts that JSON.parse refuses', () => {
    const texts = [
      '{}',
      ' [1, -0.5e3] ',
      '"\\u00e9"',
      '{"a":1,}',
      '[1 2]',
      '{"a"}',
      'nul',
      '01',
      '"\t"',
      '',
      '{} x',
      '[1,]',
    ]
    for (const text of texts) expect(mistakeIn(text) === undefined, text).to.equal(isJson(text))
    expect(mistakeIn('{\n  "a": 1\n  "b": 2\n}')).to.equal('{\n  "a": 1\n  '.length)
  })

  function isJson(text: string): boolean {
    try {
      JSON.parse(text)
      return true
    } catch {
      return false
    }
  }
})

describe('the keys of the JSON editor', () => {
  it('Tab goes on to the next step of two, and moves all lines that are selected; Shift and Tab move them back', () => {
    expect(done('a|b', indent)).to.equal('a |b')
    expect(done('ab|', indent)).to.equal('ab  |')
    expect(done('x\n{|\n\n  a\n}|\n', indent)).to.equal('x\n  {|\n\n    a\n  }|\n')
    expect(done('  {|\n  a\n}|', outdent)).to.equal('{|\na\n}|')
    expect(done('\ta|', outdent)).to.equal('a|')
    expect(done('a|', outdent)).to.equal('a|')
  })

  it('Enter keeps the indentation, goes one step further behind an opening bracket, and puts the closing one below', () => {
    expect(done('  "a": 1,|', breakLine)).to.equal('  "a": 1,\n  |')
    expect(done('  "a": {|', breakLine)).to.equal('  "a": {\n    |')
    expect(done('  "a": [|],', breakLine)).to.equal('  "a": [\n    |\n  ],')
    expect(done('{|}', breakLine)).to.equal('{\n  |\n}')
  })

  it('a closing bracket that is the first of its line goes back one step', () => {
    const close = (text: string, selected: Selected) => closeBracket(text, selected, '}')
    expect(done('{\n    |', close)).to.equal('{\n  }|')
    for (const text of ['{|', '  "a"|']) expect(done(text, close)).to.equal(undefined)
  })

  /** The text after a key, with a bar at both ends of what is selected, before and after. */
  function done(marked: string, key: (text: string, selected: Selected) => Edit | undefined): string | undefined {
    const [before = '', middle, after] = marked.split('|')
    const text = before + middle + (after ?? '')
    const edit = key(text, [before.length, before.length + (after === undefined ? 0 : (middle?.length ?? 0))])
    if (!edit) return undefined
    const next = text.slice(0, edit.from) + edit.insert + text.slice(edit.to)
    const [from, to] = edit.select
    const bars = from === to ? [next.slice(from)] : [next.slice(from, to), next.slice(to)]
    return [next.slice(0, from), ...bars].join('|')
  }
})
