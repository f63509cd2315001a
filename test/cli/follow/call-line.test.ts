import { expect } from 'chai'
import { callLine, subjectOf } from '../../../services/cli/follow/call-line.ts'
import { createStyle } from '../../../services/cli/text/style.ts'
import { widthOf } from '../../../services/cli/text/width.ts'

const style = createStyle({ hasColours: false, isUtf8: true })
const line = (input: object, columns: number, depth = 0) =>
  callLine(
    { symbol: '✓', call: { toolName: 'Read', input: input as Record<string, never> }, right: '4.1 KB    0.1 s' },
    { style, columns, depth },
  )

describe('services/cli/follow/call-line', () => {
  it('is one line that fits, at 80 and at 200 columns, with the figures at its right end', () => {
    expect(line({ path: 'CHANGELOG.md' }, 80)).to.equal(`  ✓ Read CHANGELOG.md${' '.repeat(43)}4.1 KB    0.1 s`)
    for (const columns of [80, 200])
      expect(widthOf(line({ path: 'x'.repeat(300) }, columns))).to.equal(Math.min(columns - 1, 100))
    expect(widthOf(line({ path: '日'.repeat(300) }, 80))).to.be.within(78, 79)
    expect(widthOf(line({ path: 'x'.repeat(300) }, 80, 3))).to.equal(79)
  })

  it('is one line in a terminal that is far too narrow', () => {
    expect(line({ path: 'CHANGELOG.md' }, 10)).to.not.include('\n')
  })

  it('names what the call acts on, else its whole input, with what is hidden in it as escapes', () => {
    expect(subjectOf({ content: 'x', path: 'a\u001b[2J.txt' })).to.equal('a\\u001b[2J.txt')
    expect(subjectOf({ command: 'a\nb' })).to.equal('a\\nb')
    expect(subjectOf({ n: 1 })).to.equal('{"n":1}')
    expect(subjectOf({})).to.equal('')
  })
})
