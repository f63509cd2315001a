import type { Key } from 'node:readline'
import { createInterface } from 'node:readline/promises'
import type { Io } from '../io.ts'

export type LineQuestion = {
  question: string
  /** The text that stands there first and can be changed. */
  given?: string
  /** Lines that were entered earlier, the newest first. */
  history?: string[]
  signal?: AbortSignal
  /** Whether Escape leaves the question. */
  hasEscape?: boolean
}

/** Asks for a line on the terminal. `undefined` when there is none: Ctrl-C, Ctrl-D, Escape where it counts, or the signal was aborted. */
export async function askLine(
  io: Io,
  { question, given = '', history = [], signal, hasEscape }: LineQuestion,
): Promise<string | undefined> {
  const { stdin: input, stderr: output } = io
  const lines = createInterface({ input, output, history, terminal: true })
  const ended = new AbortController()
  const end = () => ended.abort()
  const onKey = (_: unknown, { name }: Key) => hasEscape && name === 'escape' && end()
  lines.once('SIGINT', end).once('close', end)
  input.on('keypress', onKey) // Readline makes them of what is typed.
  signal?.addEventListener('abort', end, { once: true, signal: ended.signal })
  try {
    if (signal?.aborted || input.readableEnded) return undefined
    const answer = lines.question(question, { signal: ended.signal })
    lines.write(given)
    return await answer
  } catch (cause) {
    if (!ended.signal.aborted) throw cause
    output.write('\n')
    return undefined
  } finally {
    input.off('keypress', onKey)
    lines.close()
  }
}
