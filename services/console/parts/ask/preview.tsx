import type { Ask } from '../../api/pending.ts'
import { Json } from '../json.tsx'

/** The effect of the call: its diff, command or request, else its input. */
export function Preview({ ask }: { ask: Pick<Ask, 'preview' | 'input'> }) {
  const { preview, input } = ask
  if (preview === undefined) return <Json value={input} />
  if (preview.kind === 'diff') return <Diff text={preview.diff} />
  if (preview.kind === 'command') return <pre class="code">$ {preview.command}</pre>
  return (
    <pre class="code">
      {preview.method} {preview.url}
    </pre>
  )
}

/** One line that tells requests apart in a list. */
export function summaryOf({ preview, message, tool_name }: Pick<Ask, 'preview' | 'message' | 'tool_name'>): string {
  if (preview?.kind === 'command') return preview.command
  if (preview?.kind === 'request') return preview.url
  return message || tool_name
}

const CLASSES: Readonly<Record<string, string>> = { '+': 'added', '-': 'removed', '@': 'place', '\\': 'place' }

function Diff({ text }: { text: string }) {
  const lines = text.replace(/\n$/, '').split('\n')
  return (
    <pre class="code diff">
      {lines.map((line, i) => (
        <span key={i} class={/^(---|\+\+\+) /.test(line) && i < 2 ? 'place' : CLASSES[line[0] ?? '']}>
          {line}
        </span>
      ))}
    </pre>
  )
}
