import type { Token, Tokens } from 'marked'
import type { ComponentChildren, JSX } from 'preact'
import { Inline } from './inline.tsx'

/** Deeper nesting is shown as text. */
const MOST_DEPTH = 12

type BlocksProps = { tokens: readonly Token[]; depth: number }

export function Blocks({ tokens, depth }: BlocksProps): JSX.Element {
  return (
    <>
      {tokens.map((token, i) => (
        <Block key={i} token={token} depth={depth} />
      ))}
    </>
  )
}

function Block({ token, depth }: { token: Token; depth: number }): JSX.Element | null {
  if (depth > MOST_DEPTH) return <p class="as-is">{token.raw}</p>
  const inner = () => <Inline tokens={'tokens' in token ? (token.tokens ?? []) : []} depth={depth + 1} />
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'hr':
      return <hr />
    case 'heading':
      return <Heading depth={(token as Tokens.Heading).depth}>{inner()}</Heading>
    case 'paragraph':
      return <p>{inner()}</p>
    case 'text':
      return <>{'tokens' in token && token.tokens ? inner() : (token as Tokens.Text).text}</>
    case 'code':
      return <pre class="code">{(token as Tokens.Code).text}</pre>
    case 'blockquote':
      return (
        <blockquote>
          <Blocks tokens={(token as Tokens.Blockquote).tokens} depth={depth + 1} />
        </blockquote>
      )
    case 'list':
      return <List list={token as Tokens.List} depth={depth + 1} />
    case 'table':
      return <Table table={token as Tokens.Table} depth={depth + 1} />
    default:
      return <p class="as-is">{token.raw}</p> // HTML among them.
  }
}

/** The page has headings of its own above those of a text. */
function Heading({ depth, children }: { depth: number; children: ComponentChildren }): JSX.Element {
  return (
    <p class={`heading h${depth}`} role="heading" aria-level={Math.min(6, depth + 2)}>
      {children}
    </p>
  )
}

function List({ list: { ordered, start, items }, depth }: { list: Tokens.List; depth: number }): JSX.Element {
  const rows = items.map((item, i) => (
    <li key={i}>
      {item.task && (
        <input type="checkbox" checked={item.checked ?? false} disabled aria-label={item.checked ? 'done' : 'open'} />
      )}
      <Blocks tokens={item.tokens} depth={depth} />
    </li>
  ))
  return ordered ? <ol start={start === '' ? 1 : start}>{rows}</ol> : <ul>{rows}</ul>
}

function Table({ table: { header, rows }, depth }: { table: Tokens.Table; depth: number }): JSX.Element {
  const cells = (row: Tokens.TableCell[], Cell: 'th' | 'td') =>
    row.map(({ tokens, align }, i) => (
      <Cell key={i} class={align === 'right' ? 'right' : undefined}>
        <Inline tokens={tokens} depth={depth} />
      </Cell>
    ))
  return (
    <div class="table-wrap">
      <table class="table">
        <thead>
          <tr>{cells(header, 'th')}</tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>{cells(row, 'td')}</tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
