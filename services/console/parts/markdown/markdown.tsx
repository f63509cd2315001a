import { lexer, type Token } from 'marked'
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { Blocks } from './blocks.tsx'
import './markdown.css'

/** Longer texts are shown as they are: reading their structure would keep the page from answering. */
const MOST_CHARS = 60_000

/** The text of a model. Its structure becomes nodes; no HTML is ever made of it. While it grows only its last part is read again. */
export function Markdown({ text, isOpen = false }: { text: string; isOpen?: boolean }): JSX.Element {
  const settledAt = isOpen ? lastBreak(text) : text.length
  return (
    <div class="markdown">
      <Part text={text.slice(0, settledAt)} />
      {settledAt < text.length && <Part text={text.slice(settledAt)} />}
    </div>
  )
}

function Part({ text }: { text: string }): JSX.Element {
  const tokens = useMemo(() => lex(text), [text])
  return tokens ? <Blocks tokens={tokens} depth={0} /> : <p class="as-is">{text}</p>
}

/** `undefined` for a text whose structure cannot be read, such as one that is nested too deeply. */
function lex(text: string): readonly Token[] | undefined {
  if (text.length > MOST_CHARS) return undefined
  try {
    return lexer(text)
  } catch {
    return undefined
  }
}

/** Where the last paragraph begins, outside of a fenced block. */
function lastBreak(text: string): number {
  const at = text.lastIndexOf('\n\n')
  if (at < 0) return 0
  const fences = text.slice(0, at).match(/^ {0,3}(```|~~~)/gm)?.length ?? 0
  return fences % 2 === 0 ? at + 2 : 0
}
