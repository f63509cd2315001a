import { ApiError, type PermissionAsk } from '../../../shared/client/client.ts'
import { escapeHidden } from '../../../shared/reading/hidden.ts'
import type { Io } from '../io.ts'
import type { Output } from '../output.ts'
import { countdown } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'
import { askLine } from './ask-line.ts'
import { callLine, callText, fitsLine } from './call-line.ts'
import { editInput, questionOf } from './edit-input.ts'
import { changeOf, fits, paint, previewLines, shortened } from './preview.ts'

/** How a question is drawn among other lines. */
export type Screen = {
  print(...lines: string[]): void
  setPrompt(prompt: (() => string) | undefined): void
  clear(): void
}

/** `quit` leaves the question to others: `q`, where it is given. */
type Place = { io: Io; output: Output; screen: Screen; quit?: () => void }

const MOST_LINES = 12
const INDENT = '      '

/** Shows the effect of a call and asks for one key, until the request is decided here or elsewhere. */
export async function askPerson(ask: PermissionAsk, place: Place): Promise<void> {
  const { output, screen, io, quit } = place
  const keys = `asedv${quit ? 'q' : ''}`
  let isSeen = printQuestion(ask, place)
  while (!ask.signal.aborted) {
    const pressed = readKey(io, keys, ask.signal) // First, so that a key that is pressed as the question appears is read.
    screen.setPrompt(() => keyLine(ask, { isSeen, canQuit: quit !== undefined }, output))
    const key = await pressed
    screen.setPrompt(undefined)
    screen.clear()
    try {
      if (key === 'q') return quit?.()
      if (key === 'v') isSeen = printAll(ask, place)
      else if (!isSeen && (key === 'a' || key === 's')) screen.print(output.style.red(NOT_SEEN))
      else if (key === undefined || (await isAnswered(key, ask, place))) return
    } catch (cause) {
      if (cause instanceof ApiError && cause.status !== 400) throw cause
      screen.print(output.style.red(`  ${plainLine(cause instanceof Error ? cause.message : String(cause))}`))
    }
  }
}

/** Shows as much of the call as fits. Returns whether the whole call is shown. */
function printQuestion(ask: PermissionAsk, { output, screen }: Place): boolean {
  const { style } = output
  const symbol = style.yellow(style.symbols.ask)
  const [lines, right] = [previewLines(ask), changeOf(ask)]
  const space = {
    most: Math.min(MOST_LINES, Math.max(4, output.rows() - 6)),
    columns: output.columns() - INDENT.length - 1,
  }
  const isWhole = fits(lines, space) && fitsLine(ask, right, output.columns())
  screen.print(
    callLine({ symbol, call: ask, right }, { style, columns: output.columns() }),
    ...(isWhole ? [] : [style.yellow(`${INDENT}This is not all of it: press v before you allow it.`)]),
    ...shortened(lines, { ...space, style }).map((line) => INDENT + line),
  )
  return isWhole
}

function printAll(ask: PermissionAsk, { output, screen }: Place): true {
  const lines = previewLines(ask).map((line) => paint(line, output.style))
  screen.print(...[callText(ask), ...lines, escapeHidden(ask.message)].map((line) => INDENT + line))
  return true
}

const NOT_SEEN = '  You have not seen all of it: press v first.'

function keyLine(
  ask: PermissionAsk,
  { isSeen, canQuit }: { isSeen: boolean; canQuit: boolean },
  { style }: Output,
): string {
  const left = countdown(ask.expiresAt.getTime() - Date.now())
  const keys = isSeen
    ? '[a]llow  [s]ession  [e]dit  [d]eny  [v]iew all'
    : '[v]iew all, then [a]llow  [s]ession  [e]dit  [d]eny'
  const all = canQuit ? `${keys}  [q]uit`.replace(', then', ':') : keys
  return `    ${all}${style.symbols.sep}denied in ${left} ${style.symbols.prompt} `
}

/** Executes the action of the key. Returns `false` if the question stays open. */
async function isAnswered(key: string, ask: PermissionAsk, { io }: Place): Promise<boolean> {
  if (key === 'e') {
    const input = await editInput(io, ask)
    if (input === undefined || input === ask.input) return false
    await ask.allow({ input })
    return true
  }
  if (key === 'd') {
    const reason = await askLine(io, {
      question: questionOf('reason (shown to the model, may be empty)', ask.expiresAt),
      signal: ask.signal,
      hasEscape: true,
    })
    if (reason === undefined) return false
    await ask.deny(reason.trim() || undefined)
    return true
  }
  await ask.allow({ remember: key === 's' })
  return true
}

/** Keys that were pressed before a question was shown, or at that moment, were meant for something else. */
const DEAF_MS = 300

/** Waits for one of the keys; returns `undefined` when the signal is aborted. Ctrl-C is passed on as an interrupt. */
export function readKey(io: Io, keys: string, signal: AbortSignal): Promise<string | undefined> {
  const { stdin } = io
  const from = performance.now() + DEAF_MS
  return new Promise((resolve) => {
    const end = (key?: string) => {
      stdin.off('data', onData)
      signal.removeEventListener('abort', onAbort)
      stdin.setRawMode(false)
      stdin.pause()
      resolve(key)
    }
    const onAbort = () => end()
    const onData = (bytes: Buffer) => {
      for (const key of bytes.toString('utf8')) {
        if (key === '\u0003') io.interrupt()
        else if (performance.now() >= from && keys.includes(key)) return end(key)
      }
    }
    if (signal.aborted) return resolve(undefined)
    signal.addEventListener('abort', onAbort, { once: true })
    stdin.setRawMode(true)
    stdin.on('data', onData)
    stdin.resume()
  })
}
