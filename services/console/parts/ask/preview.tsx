import type { Schema } from '../../../../shared/client/api.ts'
import { showHidden } from '../../../../shared/reading/hidden.ts'
import type { Ask } from '../../api/pending.ts'
import { Lines } from '../foreign.tsx'
import { Json } from '../json.tsx'
import { Notice } from '../notice.tsx'
import { Address } from './address.tsx'

type Asked = { input: Ask['input']; preview?: Schema<'PermissionPreview'> | undefined }

/** The effect of the call: its diff, command or request, and all of its input that does not stand there. */
export function Preview({ ask: { preview, input } }: { ask: Asked }) {
  const rest = restOf(input, preview)
  return (
    <>
      {preview?.kind === 'diff' && isCut(preview.diff) && (
        <Notice tone="warn">The change is too long to be compared as a whole. Its whole input stands below it.</Notice>
      )}
      {preview && <Effect preview={preview} />}
      {rest && <Json value={rest} />}
    </>
  )
}

function Effect({ preview }: { preview: Schema<'PermissionPreview'> }) {
  if (preview.kind === 'diff') return <Diff text={preview.diff} />
  if (preview.kind === 'request') return <Address method={preview.method} typed={preview.url} />
  if (preview.kind === 'form') return <Json value={preview.schema} />
  if (preview.kind === 'link')
    return (
      <pre class="code">
        <Lines text={preview.url} />
      </pre>
    )
  return (
    <pre class="code">
      $ <Lines text={preview.command} />
    </pre>
  )
}

/** The end of a diff that is longer than the server sends. */
const isCut = (diff: string) => diff.trimEnd().endsWith('[… the rest is left out …]')

/** The parts of an input that a diff shows. */
const IN_DIFF: readonly string[] = ['path', 'content', 'old_string', 'new_string']

/** What the preview does not show of the input; `undefined` where it shows all. */
function restOf(input: Ask['input'], preview: Asked['preview']): Ask['input'] | undefined {
  if (!preview || preview.kind === 'form' || preview.kind === 'link') return input
  if (preview.kind === 'diff' && isCut(preview.diff)) return input
  const isShown = (name: string, value: unknown) => {
    if (preview.kind === 'diff') return IN_DIFF.includes(name)
    const [shown, text] = preview.kind === 'command' ? ['command', preview.command] : ['url', preview.url]
    return name === shown && typeof value === 'string' && showHidden(value) === text
  }
  const rest = Object.entries(input).filter(([name, value]) => !isShown(name, value))
  return rest.length === 0 ? undefined : Object.fromEntries(rest)
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
          <Lines text={line} />
        </span>
      ))}
    </pre>
  )
}
