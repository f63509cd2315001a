import type { Schema } from '../../../shared/client/client.ts'
import { showControls, showJson } from '../../../shared/reading/hidden.ts'
import type { Style } from '../text/style.ts'
import { cut, padEnd, padStart, widthOf } from '../text/width.ts'

type Input = Schema<'JsonObject'>

/** The input fields that name the target of a call, the most useful first. */
const SUBJECTS = ['path', 'command', 'url', 'pattern', 'query', 'description', 'name', 'prompt']

const WIDEST = 100
const RIGHT = 20

/** The subject of a tool call, as one line in which nothing is hidden: the path, the command, the address, else its whole input. */
export function subjectOf(input: Input): string {
  const named = SUBJECTS.map((name) => input[name]).find((value) => typeof value === 'string' && value !== '')
  if (typeof named === 'string') return showControls(named)
  return Object.keys(input).length === 0 ? '' : showJson(input)
}

export type Call = { toolName: string; input: Input }

/** The width of the whole line, and the space in it for the tool and its target. */
function spaceOf(right: string, columns: number, depth: number) {
  const width = Math.min(columns - 1, WIDEST) - 4 - depth * 2
  return { width, space: Math.max(0, width - Math.max(widthOf(right), right === '' ? 0 : RIGHT)) }
}

/** The tool and its target. */
export const callText = ({ toolName, input }: Call): string =>
  [showControls(toolName), ...(Object.keys(input).length > 0 ? [subjectOf(input)] : [])].join(' ')

/** Whether the line of the call shows all of `callText`. */
export const fitsLine = (call: Call, right: string, columns: number): boolean =>
  widthOf(callText(call)) < spaceOf(right, columns, 0).space

/** One line for a tool call: the symbol, the tool, its target, and a note on the right. */
export function callLine(
  { symbol, call, right = '' }: { symbol: string; call: Call; right?: string },
  { style, columns, depth = 0 }: { style: Style; columns: number; depth?: number },
): string {
  const { width, space } = spaceOf(right, columns, depth)
  const name = cut(showControls(call.toolName), space, style.symbols.cut)
  const subject = cut(subjectOf(call.input), Math.max(0, space - widthOf(name) - 2), style.symbols.cut)
  const left = subject === '' ? style.bold(name) : `${style.bold(name)} ${subject}`
  const used = subject === '' ? widthOf(name) : widthOf(name) + 1 + widthOf(subject)
  const gap = right === '' ? '' : padEnd('', space - used) + style.dim(padStart(right, width - space))
  return `${'  '.repeat(depth + 1)}${symbol} ${left}${gap}`
}
