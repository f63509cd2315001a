import type { Token, Tokens } from 'marked'
import type { ComponentChildren, JSX } from 'preact'

const MOST_DEPTH = 16

export function Inline({ tokens, depth }: { tokens: readonly Token[]; depth: number }): JSX.Element {
  return (
    <>
      {tokens.map((token, i) => (
        <Piece key={i} token={token} depth={depth} />
      ))}
    </>
  )
}

function Piece({ token, depth }: { token: Token; depth: number }): JSX.Element {
  if (depth > MOST_DEPTH) return <>{token.raw}</>
  const inner = () => <Inline tokens={'tokens' in token ? (token.tokens ?? []) : []} depth={depth + 1} />
  switch (token.type) {
    case 'strong':
      return <strong>{inner()}</strong>
    case 'em':
      return <em>{inner()}</em>
    case 'del':
      return <s>{inner()}</s>
    case 'br':
      return <br />
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>
    case 'link':
      return <SafeLink href={(token as Tokens.Link).href}>{inner()}</SafeLink>
    case 'image': // Nothing is loaded from where a text points to.
      return <SafeLink href={(token as Tokens.Image).href}>{(token as Tokens.Image).text || 'image'}</SafeLink>
    case 'escape':
      return <>{(token as Tokens.Escape).text}</>
    case 'text':
      return <>{'tokens' in token && token.tokens ? inner() : decode((token as Tokens.Text).text)}</>
    default:
      return <>{token.raw}</> // HTML among them.
  }
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: '\u00a0' }

/** The entities that models write. */
const decode = (text: string) =>
  text.replaceAll(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name: string) => ENTITIES[name] ?? all)

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
