import { expect } from 'chai'
import { fieldLines } from '../../../services/cli/text/fields.ts'

describe('services/cli/text/fields', () => {
  it('shows fields below each other, what is within one indented, and nothing of what is empty', () => {
    const thing = {
      id: 'run_1',
      none: null,
      empty: [],
      usage: { turns: 0, error: '' },
      tags: ['a', 'b'],
      rows: [{ n: 1 }],
      text: 'one\ntwo\u001b[2J',
    }
    expect(fieldLines(thing)).to.equal(
      [
        'id     run_1',
        'usage  ',
        '  turns  0',
        'tags   a, b',
        'rows   ',
        '  - {"n":1}',
        'text   one',
        '       two[2J',
        '',
      ].join('\n'),
    )
  })
})
