import { expect } from 'chai'
import { GrowingText } from '../../../../services/console/parts/markdown/growing-text.ts'
import {
  type MarkdownNode,
  readMarkdown,
  type Section,
} from '../../../../services/console/parts/markdown/read-markdown.ts'
import { HOSTILE } from '../../support/story.ts'

const LENGTH = 60_000

/** Texts that parsers of Markdown are slow for. */
const SLOW = [
  ...[
    '*a_',
    '_a*',
    '__a*',
    '**a_',
    '~a*',
    '*a[',
    '[*a_',
    '(*a_',
    '[a](',
    '![a](',
    '[a](<',
    '[a](b "',
    '[a][',
    '[',
    '![',
    '***a',
  ],
  ...[
    '`` ` ',
    '<',
    '<a ',
    '&',
    '\\',
    'http://',
    'https://a.b/(',
    '|',
    '-|-\n',
    '|a|\n|-|\n',
    '> ',
    '- - ',
    '>- ',
    '* a\n',
    '1) a\n',
  ],
  ...['- a\n  ', '\n\n', 'a\n\n', 'a\n=\n', '```\n', '[a]: b\n', '[a]: <', '-\n', '\t', 'a ', '*', '_', 'a'],
]

const textOf = (nodes: readonly MarkdownNode[]): string =>
  nodes.map(({ token, children }) => (token.type === 'inline' ? '' : token.content) + textOf(children)).join('')

const shownBy = (sections: readonly Section[]): string =>
  sections.map(({ raw, nodes }) => raw ?? textOf(nodes ?? [])).join('\n')

const typesOf = (nodes: readonly MarkdownNode[]): string[] =>
  nodes.flatMap(({ type, children }) => [type, ...typesOf(children)])

const count = (nodes: readonly MarkdownNode[]): number =>
  nodes.reduce((sum, { children }) => sum + 1 + count(children), 0)

const depth = (nodes: readonly MarkdownNode[]): number =>
  Math.max(0, ...nodes.map(({ children }) => 1 + depth(children)))

describe('the Markdown of a model', () => {
  it('has the structure that people know, with tables, bare addresses and struck text', () => {
    const text =
      '# a\n\nb **c** ~~d~~ `e` https://f.example\n\n1. g\n2. h\n\n> i\n\n| j | k |\n|---|--:|\n| l | m |\n\n```\nn\n```'
    const sections = readMarkdown(text)
    expect(sections.map(({ nodes }) => nodes?.[0]?.type)).to.deep.equal([
      'heading',
      'paragraph',
      'ordered_list',
      'blockquote',
      'table',
      'fence',
    ])
    expect(typesOf(sections[1]?.nodes ?? [])).to.include.members(['strong', 's', 'code_inline', 'link'])
    expect(sections.map(({ start }) => text.slice(start, start + 2))).to.deep.equal([
      '# ',
      'b ',
      '1.',
      '> ',
      '| ',
      '``',
    ])
  })

  it('HTML in it is text, and it makes no link or image of a script', () => {
    for (const text of HOSTILE) {
      const types = readMarkdown(text).flatMap(({ nodes = [] }) => typesOf(nodes))
      expect(types).not.to.include.members(['html_block']).and.not.include.members(['html_inline'])
    }
    expect(shownBy(readMarkdown('<b onclick=x>'))).to.include('<b onclick=x>')
  })

  it('what is nested more deeply than a reader follows is shown all the same', () => {
    for (const text of [
      `${'> '.repeat(60)}inner`,
      `${'- '.repeat(60)}inner`,
      `${'*'.repeat(400)}inner${'*'.repeat(400)}`,
      `${'['.repeat(90)}inner`,
    ]) {
      const sections = readMarkdown(text)
      expect(shownBy(sections)).to.include('inner')
      expect(Math.max(...sections.map(({ nodes = [] }) => depth(nodes)))).to.be.below(60)
    }
  })

  for (const part of SLOW)
    it(`${LENGTH} characters of ${JSON.stringify(part)} give a bounded number of nodes, and take no second of CPU time`, () => {
      const text = part.repeat(LENGTH).slice(0, LENGTH)
      const before = process.cpuUsage()
      const sections = readMarkdown(text)
      const { user, system } = process.cpuUsage(before)
      expect(sections.reduce((sum, { nodes = [] }) => sum + count(nodes), 0)).to.be.at.most(8_000)
      expect(sections.length).to.be.at.most(2_000)
      expect((user + system) / 1_000, 'ms').to.be.below(1_000)
    })
})

describe('a text of a model that grows', () => {
  const whole = Array.from(
    { length: 120 },
    (_, i) =>
      [
        '# head',
        '- item\n- other',
        'some *text*\nof two lines',
        '```\ncode\n\nmore\n```',
        '> quote',
        '| a |\n|---|\n| b |',
      ][i % 6],
  ).join('\n\n')

  /** Grows by a few characters each time; `read` counts. */
  function grow(text: string, step: number) {
    let chars = 0
    const growing = new GrowingText((part) => ((chars += part.length), readMarkdown(part)))
    let shown: readonly Section[] = []
    for (let at = step; at < text.length + step; at += step) shown = growing.sections(text.slice(0, at))
    return { chars, shown, growing }
  }

  it('ends with the structure of the whole', () => {
    const types = (sections: readonly Section[]) => sections.map(({ nodes = [] }) => typesOf(nodes))
    expect(types(grow(whole, 3).shown)).to.deep.equal(types(readMarkdown(whole)))
  })

  it('a block that has ended is not read again: what is read is a small multiple of its length', () => {
    expect(grow(whole, 7).chars).to.be.below(whole.length * 12)
  })

  it('a single paragraph is read in growing steps', () => {
    const text = 'word '.repeat(4_000)
    const { chars, shown } = grow(text, 20)
    expect(chars).to.be.below(text.length * 40)
    expect(shownBy(shown).replaceAll('\n', '')).to.have.length.at.least(text.length - 1)
  })

  it('blocks that have ended stay the same objects', () => {
    const growing = new GrowingText()
    const before = growing.sections('# a\n\nb\n\nc\n\nd')
    const after = growing.sections('# a\n\nb\n\nc\n\nd and more\n\nend')
    for (const i of [0, 1]) expect(after[i]).to.equal(before[i])
    expect(after).to.have.length(5)
  })

  it('another text is read anew', () => {
    const growing = new GrowingText()
    growing.sections('# a\n\nb\n\nc')
    expect(shownBy(growing.sections('other'))).to.equal('other')
  })
})
