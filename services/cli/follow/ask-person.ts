import { ApiError, type PermissionAsk } from '../../../shared/client/client.ts'
import type { Io } from '../io.ts'
import type { Output } from '../output.ts'
import { countdown } from '../text/figures.ts'
import { plain, plainLine } from '../text/plain.ts'
import { askLine } from './ask-line.ts'
import { callLine } from './call-line.ts'
import { editInput, questionOf } from './edit-input.ts'
import { readKey } from './keys.ts'
import { changeOf, paint, previewLines, shortened } from './preview.ts'

/** Where a question stands among other lines. */
export type Screen = {
  print(...lines: string[]): void
  setPrompt(prompt: (() => string) | undefined): void
  clear(): void
}

type Place = { io: Io; output: Output; screen: Screen }

const MOST_LINES = 12
const INDENT = '      '

/** Shows what a call would do and asks for one key, until the request is decided, here or elsewhere. */
export async function askPerson(ask: PermissionAsk, place: Place): Promise<void> {
  const { output, screen, io } = place
  printQuestion(ask, place)
  while (!ask.signal.aborted) {
    const pressed = readKey(io, 'asedv', ask.signal) // First, so that a key that is pressed as the question appears is read.
    screen.setPrompt(() => keyLine(ask, output))
    const key = await pressed
    screen.setPrompt(undefined)
    screen.clear()
    try {
      if (key === undefined || (await isAnswered(key, ask, place))) return
    } catch (cause) {
      if (cause instanceof ApiError && cause.status !== 400) throw cause
      screen.print(output.style.red(`  ${plainLine(cause instanceof Error ? cause.message : String(cause))}`))
    }
  }
}

function printQuestion(ask: PermissionAsk, { output, screen }: Place): void {
  const { style } = output
  const symbol = style.yellow(style.symbols.ask)
  const lines = shortened(previewLines(ask), {
    most: Math.min(MOST_LINES, Math.max(4, output.rows() - 6)),
    columns: output.columns() - INDENT.length - 1,
    style,
  })
  const call = { toolName: ask.toolName, input: ask.input }
  screen.print(
    callLine({ symbol, call, right: changeOf(ask) }, { style, columns: output.columns() }),
    ...lines.map((line) => INDENT + line),
  )
}

function keyLine(ask: PermissionAsk, { style }: Output): string {
  const left = countdown(ask.expiresAt.getTime() - Date.now())
  return `    [a]llow  [s]ession  [e]dit  [d]eny  [v]iew all${style.symbols.sep}denied in ${left} ${style.symbols.prompt} `
}

/** Does what the key stands for. `false` when the question stays. */
async function isAnswered(key: string, ask: PermissionAsk, { io, output, screen }: Place): Promise<boolean> {
  if (key === 'v') {
    screen.print(
      ...previewLines(ask).map((line) => INDENT + paint(line, output.style)),
      `${INDENT}${plain(ask.message)}`,
    )
    return false
  }
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
