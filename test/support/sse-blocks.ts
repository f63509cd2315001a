/** What stands between two blank lines of a stream: comment lines, and a frame behind them unless it is empty. */
export type SseBlock = { comments: string[]; frame: string }

/** Only lines before the frame are comments: none may stand inside it (D4.2). */
export function readBlock(block: string): SseBlock {
  if (!block.startsWith(':')) return { comments: [], frame: block }
  const lines = block.split('\n')
  const first = lines.findIndex((line) => !line.startsWith(':'))
  const count = first < 0 ? lines.length : first
  return { comments: lines.slice(0, count), frame: lines.slice(count).join('\n') }
}
