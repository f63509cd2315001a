import { escapeHidden, showHidden, showJson } from './hidden.ts'

type Preview =
  | { kind: 'diff'; path: string; diff: string }
  | { kind: 'command'; command: string }
  | { kind: 'request'; method: string; url: string }
  | { kind: 'form'; schema: Readonly<Record<string, unknown>> }
  | { kind: 'link'; url: string }

/** A tool call that waits for a person, with the preview that the server has made. */
export type AskedCall = { input: Readonly<Record<string, unknown>>; preview?: Preview | undefined }

/**
 * A call in the form that a person reads before they allow it: its effect, and as JSON the rest of its input. Two different calls never look
 * alike. `isCut`: the server has left out the end of the diff, so that `rest` is the whole input.
 */
export type ReadCall = { rest: string | undefined } & (
  | { kind: 'input' }
  | { kind: 'diff'; path: string; lines: string[]; isCut: boolean }
  | { kind: 'command'; command: string }
  | { kind: 'form'; schema: string }
  | { kind: 'request'; method: string; written: string; address: ReadAddress | undefined }
)

export function readCall({ input, preview }: AskedCall): ReadCall {
  if (!preview) return { kind: 'input', rest: showJson(input, 2) }
  if (preview.kind === 'diff') {
    const isCut = preview.diff.trimEnd().endsWith('[… the rest is left out …]')
    const lines = escapeHidden(preview.diff).replace(/\n$/, '').split('\n')
    return { kind: 'diff', path: escapeHidden(preview.path), lines, isCut, rest: without(input, isCut ? [] : IN_DIFF) }
  }
  if (preview.kind === 'command') {
    const isShown = isText(input['command'], preview.command)
    return { kind: 'command', command: escapeHidden(preview.command), rest: without(input, isShown ? ['command'] : []) }
  }
  if (preview.kind === 'form') return { kind: 'form', schema: showJson(preview.schema, 2), rest: without(input, []) }
  const written = escapeHidden(preview.url)
  if (preview.kind === 'link') {
    const address = written.includes('\\') ? undefined : readAddress(written)
    return { kind: 'request', method: 'Open', written, address, rest: without(input, []) }
  }
  const { url } = input
  const isShown = isText(url, preview.url)
  // The preview's address has escapes, so it would be another address.
  const address = isShown ? readAddress(String(url)) : undefined
  return { kind: 'request', method: preview.method, written, address, rest: without(input, isShown ? ['url'] : []) }
}

/** The parts of an input that a diff shows. */
const IN_DIFF = ['path', 'content', 'old_string', 'new_string']

/** Whether the preview shows this value. */
const isText = (value: unknown, shown: string) => typeof value === 'string' && showHidden(value) === shown

function without(input: AskedCall['input'], shown: readonly string[]): string | undefined {
  const rest = Object.entries(input).filter(([name]) => !shown.includes(name))
  return rest.length === 0 ? undefined : showJson(Object.fromEntries(rest), 2)
}

/** An address in the form that an HTTP client uses, in three parts. `isAsWritten`: the text already had this form. */
export type ReadAddress = { before: string; host: string; after: string; isAsWritten: boolean }

/** `undefined` for a text that is no address. */
function readAddress(typed: string): ReadAddress | undefined {
  const url = URL.parse(typed)
  if (!url) return undefined
  const { username, password } = url
  const user = username === '' && password === '' ? '' : `${username}${password === '' ? '' : `:${password}`}@`
  return {
    before: `${url.protocol}${url.href.startsWith(`${url.protocol}//`) ? '//' : ''}${user}`,
    host: url.host,
    after: url.pathname + url.search + url.hash,
    isAsWritten: url.href === typed,
  }
}
