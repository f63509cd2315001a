import { type ComponentChildren, h, type JSX } from 'preact'
import { Inline } from './inline.tsx'
import type { MarkdownNode } from './read-markdown.ts'

export function Blocks({ nodes }: { nodes: readonly MarkdownNode[] }): JSX.Element {
  return (
    <>
      {nodes.map((node, i) => (
        <Block key={i} node={node} />
      ))}
    </>
  )
}

const TAGS = { blockquote: 'blockquote', bullet_list: 'ul', thead: 'thead', tbody: 'tbody', tr: 'tr' } as const

function Block({ node: { type, token, children } }: { node: MarkdownNode }): JSX.Element {
  const inner = () => <Blocks nodes={children} />
  switch (type) {
    case 'inline':
      return <Inline nodes={children} />
    case 'hr':
      return <hr />
    case 'heading':
      return <Heading depth={Number(token.tag.slice(1))}>{inner()}</Heading>
    case 'paragraph':
      return token.hidden ? inner() : <p>{inner()}</p>
    case 'code_block':
    case 'fence':
      return <pre class="code">{token.content.replace(/\n$/, '')}</pre>
    case 'ordered_list':
      return <ol start={Number(token.attrGet('start') ?? 1)}>{inner()}</ol>
    case 'list_item':
      return <Item nodes={children} />
    case 'table':
      return (
        <div class="table-wrap">
          <table class="table">{inner()}</table>
        </div>
      )
    case 'blockquote':
    case 'bullet_list':
    case 'thead':
    case 'tbody':
    case 'tr':
      return h(TAGS[type], null, inner())
    case 'th':
      return <th class={sideOf(token)}>{inner()}</th>
    case 'td':
      return <td class={sideOf(token)}>{inner()}</td>
    default:
      return <p class="as-is">{token.content}</p>
  }
}

const sideOf = (token: MarkdownNode['token']) =>
  String(token.attrGet('style')).includes('right') ? 'right' : undefined

/** The headings of a text are one level below those of the page. */
function Heading({ depth, children }: { depth: number; children: ComponentChildren }): JSX.Element {
  return (
    <p class={`heading h${depth}`} role="heading" aria-level={Math.min(6, depth + 2)}>
      {children}
    </p>
  )
}

/** An item of a list. One that begins with `[ ]` or `[x]` is a task. */
function Item({ nodes }: { nodes: readonly MarkdownNode[] }): JSX.Element {
  const first = nodes[0]?.children[0]?.children[0]?.token
  const mark = first?.type === 'text' ? /^\[([ xX])\] /.exec(first.content) : null
  if (!first || !mark)
    return (
      <li>
        <Blocks nodes={nodes} />
      </li>
    )
  const isDone = mark[1] !== ' '
  return (
    <li>
      <input type="checkbox" checked={isDone} disabled aria-label={isDone ? 'done' : 'open'} />
      <Blocks nodes={withoutMark(nodes, mark[0].length)} />
    </li>
  )
}

/** The nodes without the first characters of their first text. */
function withoutMark([first, ...rest]: readonly MarkdownNode[], length: number): readonly MarkdownNode[] {
  if (!first) return []
  if (first.type !== 'text') return [{ ...first, children: withoutMark(first.children, length) }, ...rest]
  return [
    { ...first, token: Object.assign(Object.create(first.token), { content: first.token.content.slice(length) }) },
    ...rest,
  ]
}
