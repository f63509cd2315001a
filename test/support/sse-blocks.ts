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

/** The blocks of a stream, as they arrive. Throws when it ends within a frame. */
export async function* blocksOf(response: Response): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  for await (const bytes of response.body ?? []) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
    rest = blocks.pop() ?? ''
    yield* blocks
  }
  if (readBlock(rest).frame !== '') throw new Error(`half a frame at the end: ${rest}`)
}
