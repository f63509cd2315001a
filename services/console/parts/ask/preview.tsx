import { type AskedCall, type ReadAddress, type ReadCall, readCall } from '../../../../shared/reading/read-call.ts'
import type { Ask } from '../../api/pending.ts'
import { Notice } from '../notice.tsx'

/** The effect of the call: its diff, command or request, and the rest of its input. */
export function Preview({ ask }: { ask: AskedCall }) {
  const call = readCall(ask)
  return (
    <>
      {call.kind === 'diff' && call.isCut && (
        <Notice tone="warn">The change is too long to be compared as a whole. Its whole input stands below it.</Notice>
      )}
      <Effect call={call} />
      {call.rest !== undefined && <pre class="code">{call.rest}</pre>}
    </>
  )
}

function Effect({ call }: { call: ReadCall }) {
  if (call.kind === 'input') return null
  if (call.kind === 'diff') return <Diff lines={call.lines} />
  if (call.kind === 'request') return <Address {...call} />
  if (call.kind === 'form') return <pre class="code">{call.schema}</pre>
  return (
    <pre class="code">
      $ <span class="exact">{call.command}</span>
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

const Diff = ({ lines }: { lines: readonly string[] }) => (
  <pre class="code diff">
    {stretchesOf(lines).map(({ look, text }, i) => (
      <span key={i} class={look}>
        {text}
      </span>
    ))}
  </pre>
)

/** Adjacent lines of the same kind are one text: a new file of 10,000 lines is one element. */
function stretchesOf(lines: readonly string[]): { look: string | undefined; text: string }[] {
  const stretches: { look: string | undefined; from: number; to: number }[] = []
  for (const [i, line] of lines.entries()) {
    const look = i < 2 && /^(---|\+\+\+) /.test(line) ? 'place' : CLASSES[line[0] ?? '']
    const last = stretches.at(-1)
    if (last && last.look === look) last.to = i + 1
    else stretches.push({ look, from: i, to: i + 1 })
  }
  return stretches.map(({ look, from, to }) => ({ look, text: lines.slice(from, to).join('\n') }))
}

type AddressProps = { method: string; written: string; address: ReadAddress | undefined }

/** The address of a request in parsed form, with its host highlighted; and in its original form, if that differs. */
function Address({ method, written, address }: AddressProps) {
  if (!address)
    return (
      <pre class="code">
        {method} <span class="exact">{written}</span>
      </pre>
    )
  const { before, host, after, isAsWritten } = address
  return (
    <>
      <pre class="code">
        {method} {before}
        <strong class="host">{host}</strong>
        {after}
      </pre>
      <p class="small">
        It goes to <strong class="host">{host}</strong>.
        {!isAsWritten && (
          <>
            {' '}
            As it was written: <code class="exact">{written}</code>
          </>
        )}
      </p>
    </>
  )
}
