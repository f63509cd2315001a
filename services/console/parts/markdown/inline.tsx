import type { ComponentChildren, JSX } from 'preact'
import type { MarkdownNode } from './read-markdown.ts'

export function Inline({ nodes }: { nodes: readonly MarkdownNode[] }): JSX.Element {
  return (
    <>
      {nodes.map((node, i) => (
        <Piece key={i} node={node} />
      ))}
    </>
  )
}

function Piece({ node: { type, token, children } }: { node: MarkdownNode }): JSX.Element {
  const inner = () => <Inline nodes={children} />
  switch (type) {
    case 'strong':
      return <strong>{inner()}</strong>
    case 'em':
      return <em>{inner()}</em>
    case 's':
      return <s>{inner()}</s>
    case 'hardbreak':
      return <br />
    case 'softbreak':
      return <>{'\n'}</>
    case 'code_inline':
      return <code>{token.content}</code>
    case 'link':
      return <SafeLink href={String(token.attrGet('href'))}>{inner()}</SafeLink>
    case 'image': // Nothing is loaded from where a text points to.
      return <SafeLink href={String(token.attrGet('src'))}>{token.content || 'image'}</SafeLink>
    case 'as_is':
      return <span class="as-is">{token.content}</span>
    default:
      return <>{token.content}</>
  }
}

const SCHEMES = new Set(['http:', 'https:', 'mailto:'])

/** A link to another site; one with any other scheme stays text. */
function SafeLink({ href, children }: { href: string; children: ComponentChildren }): JSX.Element {
  const url = URL.parse(href)
  if (!url || !SCHEMES.has(url.protocol)) return <>{children}</>
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer nofollow" title={url.href}>
      {children}
    </a>
  )
}
