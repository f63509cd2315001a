import type { Schema } from '../../../shared/client/client.ts'
import { plain, plainJson } from '../text/plain.ts'
import type { Style } from '../text/style.ts'
import { cut } from '../text/width.ts'

type Asked = { input: Schema<'JsonObject'>; preview?: Schema<'PermissionPreview'> | undefined }

/** The preview of a call, as lines: the change of a file, the command, the request or the question, else the input. */
export function previewLines({ input, preview }: Asked): string[] {
  if (!preview) return plainJson(input, 2).split('\n')
  switch (preview.kind) {
    case 'diff':
      return hunkLines(plain(preview.diff))
    case 'command':
      return plain(preview.command)
        .split('\n')
        .map((line, i) => `${i === 0 ? '$' : ' '} ${line}`)
    case 'form':
      return plainJson(preview.schema, 2).split('\n')
    case 'link':
      return [plain(preview.url)]
    case 'request':
      return [`${preview.method} ${plain(preview.url)}`]
  }
}

/** The first of the lines, each cut to the width and painted, with the number of those that are left out. */
export function shortened(
  lines: readonly string[],
  { most, columns, style }: { most: number; columns: number; style: Style },
): string[] {
  const isLong = lines.length > most
  const shown = isLong ? lines.slice(0, most - 1) : lines
  const rest = `${style.symbols.cut} ${lines.length - shown.length} more lines`
  return [
    ...shown.map((line) => paint(cut(line, columns, style.symbols.cut), style)),
    ...(isLong ? [style.dim(rest)] : []),
  ]
}

/** A summary of the change: what is added and taken away. */
export function changeOf({ preview }: Asked): string {
  if (preview?.kind !== 'diff') return ''
  const lines = hunkLines(preview.diff)
  const count = (sign: string) => lines.filter((line) => line.startsWith(sign)).length
  return `+${count('+')} -${count('-')}`
}

/**
 * The lines of a diff without its header, which is all there is of a change of nothing. Behind it nothing is left out: a line of a file may
 * look like one.
 */
function hunkLines(diff: string): string[] {
  const lines = diff.trimEnd().split('\n')
  const first = lines.findIndex((line) => line.startsWith('@@'))
  return first < 0 ? [] : lines.slice(first)
}

/** The colours of a diff. */
export function paint(line: string, style: Style): string {
  if (line.startsWith('+')) return style.green(line)
  if (line.startsWith('-')) return style.red(line)
  return line.startsWith('@@') ? style.dim(line) : line
}
