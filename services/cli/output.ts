import type { Io } from './io.ts'
import { createStyle, type Style, styleOptions } from './text/style.ts'

const USUAL_COLUMNS = 80
const USUAL_ROWS = 24

/** Where a command writes: the answer to stdout, all else to stderr. */
export type Output = {
  /** The style of stderr. */
  style: Style
  /** Whether lines on stderr can be drawn again in place. */
  isLive: boolean
  /** Whether the answer is read on a terminal, so that it is wrapped there. */
  isTextWrapped: boolean
  /** Whether both outputs are the same terminal. */
  isShared: boolean
  columns(): number
  rows(): number
  out(text: string): void
  err(text: string): void
}

export function createOutput({ stdout, stderr, env }: Pick<Io, 'stdout' | 'stderr' | 'env'>): Output {
  const terminal = stderr.isTTY ? stderr : stdout
  return {
    style: createStyle(styleOptions(env, stderr.isTTY)),
    isLive: stderr.isTTY && env['TERM'] !== 'dumb',
    isTextWrapped: stdout.isTTY && env['TERM'] !== 'dumb',
    isShared: stdout.isTTY && stderr.isTTY,
    columns: () => terminal.columns || USUAL_COLUMNS,
    rows: () => terminal.rows || USUAL_ROWS,
    out: (text) => void (text !== '' && stdout.write(text)),
    err: (text) => void stderr.write(text),
  }
}
