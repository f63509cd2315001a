import MarkdownIt, { type Token } from 'markdown-it'
import { ofTab } from '../../base/tab.ts'

/** A token with those that it encloses. */
export type MarkdownNode = { type: string; token: Token; children: readonly MarkdownNode[] }

/** A block at the top of a text, or a part of it that is shown as it is. `start`: its place in the text. */
export type Section = { start: number; nodes?: readonly MarkdownNode[]; raw?: string }

/**
 * A text above one of these limits is shown as it is: the first limits bound the time for parsing, the number of nodes
 * bounds the time for drawing.
 */
const MOST = { chars: 60_000, lines: 2_000, paragraph: 10_000, nodes: 8_000, nesting: 20 } as const

/** The structure of a text, block by block. No HTML is made of it, and HTML in it is text. */
export function readMarkdown(given: string): readonly Section[] {
  const text = given.replaceAll(/\r\n?/g, '\n')
  const lines = lineStarts(text)
  if (text.length > MOST.chars || lines.length > MOST.lines) return [{ start: 0, raw: text }]
  const sections = sectionsOf(parser().parse(text, {}), lines)
  const count = sections.reduce((sum, { nodes = [] }) => sum + countOf(nodes), 0)
  return count > MOST.nodes ? [{ start: 0, raw: text }] : sections.map((section) => orRaw(section, text, sections))
}

const parser = ofTab(() => {
  const markdown = new MarkdownIt({ html: false, linkify: true, maxNesting: MOST.nesting })
  markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false })
  markdown.core.ruler.at('inline', ({ tokens, env, md, Token }) => {
    for (const token of tokens) {
      if (token.type !== 'inline') continue
      token.children = []
      if (token.content.length <= MOST.paragraph) md.inline.parse(token.content, md, env, token.children)
      else token.children.push(Object.assign(new Token('as_is', '', 0), { content: token.content }))
    }
  })
  return markdown
})

function lineStarts(text: string): readonly number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

function sectionsOf(tokens: readonly Token[], lines: readonly number[]): Section[] {
  return nest(tokens).map((node) => ({ start: lines[node.token.map?.[0] ?? 0] ?? 0, nodes: [node] }))
}

/** Nodes that are nested too deeply are placed beside their parents instead. */
function nest(tokens: readonly Token[]): MarkdownNode[] {
  const top: MarkdownNode[] = []
  const open: MarkdownNode[][] = [top]
  for (const token of tokens) {
    if (token.nesting === -1) {
      if (open.length > 1) open.pop()
      continue
    }
    const children: MarkdownNode[] = token.children ? nest(token.children) : []
    const isDeep = open.length > MOST.nesting
    if (!isDeep || token.nesting === 0) open.at(-1)?.push({ type: token.type.replace(/_open$/, ''), token, children })
    if (token.nesting === 1) open.push(isDeep ? (open.at(-1) as MarkdownNode[]) : children)
  }
  return top
}

const countOf = (nodes: readonly MarkdownNode[]): number =>
  nodes.reduce((sum, { children }) => sum + 1 + countOf(children), 0)

/** The parser leaves out content that is nested too deeply, so a block near this limit is shown as plain text. */
function orRaw(section: Section, text: string, sections: readonly Section[]): Section {
  if (!(section.nodes ?? []).some(isDeep)) return section
  return { start: section.start, raw: text.slice(section.start, sections[sections.indexOf(section) + 1]?.start) }
}

const isDeep = ({ token, children }: MarkdownNode): boolean =>
  (token.block && token.level >= MOST.nesting - 2) || children.some(isDeep)
