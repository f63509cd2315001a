import { expect } from 'chai'
import fc from 'fast-check'
import { dataLine, inTags } from '../../shared/kernel/prompt-data.ts'

const CASES = { numRuns: 2_000 }

/** Texts in which tags, their escapes and line ends are frequent. */
const hostileText = (tag: string) =>
  fc
    .array(
      fc.oneof(
        fc.constantFrom(
          '<',
          '</',
          '< /',
          '<\n/ ',
          '<\u200b',
          '&lt;',
          '&amp;lt;',
          '&',
          '/',
          '>',
          '\n',
          '\u2028',
          '\u0085',
          '"',
          '\\',
        ),
        fc.constantFrom(tag, tag.toUpperCase(), `</${tag}>`, `&lt;/${tag}>`, `&amp;amp;lt;${tag} x="y">`),
        fc.string({ unit: 'grapheme', maxLength: 5 }),
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join(''))

/** Reads a block back as `inTags` has written it. */
function textIn(tag: string, block: string): string {
  const inner = block.slice(block.indexOf('\n') + 1, -`\n</${tag}>`.length)
  const mark = new RegExp(`&((?:amp;)*)lt;(?=[\\s\\p{Cf}]*/?[\\s\\p{Cf}]*${tag})`, 'giu')
  return inner.replaceAll(mark, (_found, again: string) => (again === '' ? '<' : `&${again.slice('amp;'.length)}lt;`))
}

describe('data in a prompt', () => {
  it('as a line can begin neither another line nor a tag, and is read back as it was', () => {
    const value = fc.record({ customer: hostileText('background'), answer: hostileText('step_output') })
    fc.assert(
      fc.property(value, (data) => {
        const line = dataLine(data)
        expect(line).not.to.match(/[<>\n\r\u0085\u2028\u2029]/)
        expect(JSON.parse(line)).to.deep.equal(data)
      }),
      CASES,
    )
  })

  it('between tags can neither end its block nor open another, and is read back as it was', () => {
    fc.assert(
      fc.property(hostileText('step_output'), (text) => {
        const block = inTags('step_output', text, { step: 'read' })
        const tags = block.match(/<[\s\p{Cf}]*\/?[\s\p{Cf}]*step_output/giu)
        expect(tags).to.deep.equal(['<step_output', '</step_output'])
        expect(block.startsWith('<step_output step="read">\n')).to.equal(true)
        expect(textIn('step_output', block)).to.equal(text)
      }),
      CASES,
    )
  })

  it('between tags stays as it is where nothing in it looks like its tag', () => {
    expect(inTags('step_output', 'if (a < b && c > d) return "&lt;"', { step: 'read' })).to.equal(
      '<step_output step="read">\nif (a < b && c > d) return "&lt;"\n</step_output>',
    )
    expect(inTags('x', '', { id: 'a"></X\n>' })).to.equal('<x id="a\\">&lt;/X\\n>">\n\n</x>')
  })
})
