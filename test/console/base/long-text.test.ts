import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { isHeavy, isLong, partsOf, printJson } from '../../../services/console/base/long-text.ts'

const TEXTS = [
  ...[
    'a',
    'a ',
    '\n',
    '\r',
    '|a|\n|-|\n',
    'א1',
    'e\u0301',
    '👩‍👩‍👧',
    '\u{e0061}',
    '\\u202e',
    '\u0301',
    'some words\nof a text ',
  ],
].map((part) => part.repeat(Math.ceil(60_000 / part.length)))

describe('a long text on a page', () => {
  it('stands in parts of few characters and lines, which are the text when they are joined', () => {
    for (const text of TEXTS) {
      const parts = partsOf(text)
      expect(isLong(text)).to.equal(true)
      expect(parts.join('') === text, JSON.stringify(text.slice(0, 9))).to.equal(true)
      for (const part of parts) {
        expect(part.length).to.be.within(1, 2_200)
        expect(part.split('\n').length).to.be.at.most(101)
        expect(isLong(part)).to.equal(false)
      }
    }
  })

  it('is divided behind a line or at a blank, and never within a character or an escape', () => {
    const ends = (part: string) =>
      partsOf(part.repeat(Math.ceil(30_000 / part.length))).map((each) => each.slice(-part.length))
    for (const part of ['some words\n', 'word ', 'e\u0301', '👩‍👩‍👧', '\\u202e', '\\u{e0061}'])
      expect(new Set(ends(part)), part).to.deep.equal(new Set([part]))
  })
})

describe('a field', () => {
  it('takes a text unless its lines, its changes of the font, or its lines from right to left keep the page busy', () => {
    const heavy = ['\n'.repeat(2_500), `"${'אב '.repeat(4_000)}"`, '\u001b[31m'.repeat(5_001), 'a字'.repeat(2_501)]
    const light = [
      '字 and 字 '.repeat(1_200),
      '\n'.repeat(2_499),
      'a'.repeat(60_000),
      'אב \n'.repeat(2_499),
      '字'.repeat(60_000),
    ]
    expect(printJson({ a: 1 })).to.equal('{\n  "a": 1\n}')
    expect(printJson(Array(3_000).fill(1))).to.match(/^\[1,1.*1\]$/)
    expect([...heavy, ...light].map(isHeavy)).to.deep.equal([...heavy.map(() => true), ...light.map(() => false)])
  })

  it('is the text area of the console everywhere', () => {
    const folder = join(import.meta.dirname, '../../../services/console')
    const sources = globSync('{base,pages,parts,shell,sign-in}/**/*.tsx', { cwd: folder })
    const withOwn = sources.filter((path) => readFileSync(join(folder, path), 'utf8').includes('<textarea'))
    expect(withOwn).to.deep.equal(['parts/text-area.tsx'])
  })
})
