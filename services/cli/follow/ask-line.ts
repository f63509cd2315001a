import type { Key } from 'node:readline'
import { createInterface } from 'node:readline/promises'
import type { Io } from '../io.ts'

export type LineQuestion = {
  question: string
  /** The initial text, which the user can change. */
  given?: string
  /** Lines that were entered earlier, the newest first. */
  history?: string[]
  signal?: AbortSignal
  /** Whether Escape ends the question without an answer. */
  hasEscape?: boolean
}

/** Asks for a line on the terminal. `undefined` after Ctrl-C, Ctrl-D, Escape (if allowed), or an abort of the signal. */
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
  input.on('keypress', onKey) // Readline emits these events for typed keys.
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

const MOST = 65_536

/** Asks for a text without showing it. `undefined` after Ctrl-C or Ctrl-D. */
export function askSecret({ stdin, stderr }: Io, question: string): Promise<string | undefined> {
  stdin.setRawMode(true) // This comes first, so that a token that is pasted early is not shown.
  stderr.write(question)
  return new Promise((resolve) => {
    let typed = ''
    const end = (secret?: string) => {
      stdin.off('data', onData)
      stdin.setRawMode(false)
      stdin.pause()
      stderr.write('\n')
      resolve(secret)
    }
    const onData = (bytes: Buffer) => {
      for (const key of bytes.toString('utf8')) {
        if (key === '\r' || key === '\n') return end(typed)
        if (key === '\u0003' || key === '\u0004') return end()
        if (key === '\u007f' || key === '\b') typed = typed.slice(0, -1)
        else if (key >= ' ' && typed.length < MOST) typed += key
      }
    }
    stdin.on('data', onData)
    stdin.resume()
  })
}
