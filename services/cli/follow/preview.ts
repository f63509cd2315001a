import { type AskedCall, readCall } from '../../../shared/reading/read-call.ts'
import type { Style } from '../text/style.ts'
import { cut, widthOf } from '../text/width.ts'

/** Shows a call as lines: the change of a file, the command or the request first, then the rest of the input. */
export function previewLines(asked: AskedCall): string[] {
  const call = readCall(asked)
  const rest = call.rest?.split('\n') ?? []
  switch (call.kind) {
    case 'input':
      return rest
    case 'diff':
      return [...(call.isCut ? ['The change is too long to be compared; the input:'] : hunkLines(call.lines)), ...rest]
    case 'command':
      return [...call.command.split('\n').map((line, i) => `${i === 0 ? '$' : ' '} ${line}`), ...rest]
    case 'form':
      return [...call.schema.split('\n'), ...rest]
    case 'request':
      return [...requestLines(call), ...rest]
  }
}

function requestLines({ method, written, address }: ReturnType<typeof readCall> & { kind: 'request' }): string[] {
  if (!address) return [`${method} ${written}`]
  const { before, host, after, isAsWritten } = address
  return [`${method} ${before}${host}${after}`, `  to ${host}`, ...(isAsWritten ? [] : [`  as written: ${written}`])]
}

type Space = { most: number; columns: number }

/** Whether all of the lines fit. */
export const fits = (lines: readonly string[], { most, columns }: Space): boolean =>
  lines.length <= most && lines.every((line) => widthOf(line) <= columns)

/** The first of the lines, each cut to the width and painted, with the number of those that are left out. */
export function shortened(lines: readonly string[], { most, columns, style }: Space & { style: Style }): string[] {
  const isLong = lines.length > most
  const shown = isLong ? lines.slice(0, most - 1) : lines
  const rest = `${style.symbols.cut} ${lines.length - shown.length} more lines`
  return [
    ...shown.map((line) => paint(cut(line, columns, style.symbols.cut), style)),
    ...(isLong ? [style.dim(rest)] : []),
  ]
}

/** A summary of the change: the number of added and removed lines. */
export function changeOf({ preview }: AskedCall): string {
  if (preview?.kind !== 'diff') return ''
  const lines = hunkLines(preview.diff.trimEnd().split('\n'))
  const count = (sign: string) => lines.filter((line) => line.startsWith(sign)).length
  return `+${count('+')} -${count('-')}`
}

/**
 * The lines of a diff without its header; an empty change has only a header. Only the first lines are removed, because a line of the file
 * may look like a header.
 */
function hunkLines(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => line.startsWith('@@'))
  return first < 0 ? [] : lines.slice(first)
}

/** The colours of a diff. */
export function paint(line: string, style: Style): string {
  if (line.startsWith('+')) return style.green(line)
  if (line.startsWith('-')) return style.red(line)
  return line.startsWith('@@') ? style.dim(line) : line
}
