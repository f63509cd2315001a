import { expect } from 'chai'
import {
  breakLine,
  closeBracket,
  type Edit,
  indent,
  outdent,
  type Selected,
} from '../../../../services/console/parts/editor/editing.ts'

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
