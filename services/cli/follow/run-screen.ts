import {
  type Block,
  type RunEvent,
  type RunView,
  reduceRun,
  type SubagentBlock,
  type ToolBlock,
} from '../../../shared/client/client.ts'
import type { Output } from '../output.ts'
import { bytes, duration } from '../text/figures.ts'
import { LiveRegion } from '../text/live-region.ts'
import { plain, plainLine } from '../text/plain.ts'
import { TextFlow } from '../text/text-flow.ts'
import { cut, padEnd, shortId, widthOf } from '../text/width.ts'
import { callLine } from './call-line.ts'
import { type Placed, placed, subagentTitle, totals } from './run-lines.ts'

const WIDEST_TEXT = 100
const TICK_MS = 1_000

export type RunScreenOptions = {
  output: Output
  /** Whether the answer's text is shown. If not, the caller uses stdout for something else. */
  hasText: boolean
}

/**
 * Shows a run: the answer's text on stdout, everything else on stderr. On a terminal the current activity is shown at
 * the bottom and updated in place.
 */
export class RunScreen {
  readonly #output: Output
  readonly #hasText: boolean
  readonly #live: LiveRegion
  readonly #flow: TextFlow
  readonly #startedAt = performance.now()
  #view: RunView | undefined
  /** How much of the open block of text has been written, and whether it is the first block. */
  #written = 0
  #isFirstText = true
  #endsLine = true
  #context = 0
  #prompt: (() => string) | undefined
  readonly #ticker: NodeJS.Timeout | undefined

  constructor({ output, hasText }: RunScreenOptions) {
    this.#output = output
    this.#hasText = hasText
    this.#live = new LiveRegion((text) => output.err(text))
    this.#flow = new TextFlow(() => Math.min(output.columns(), WIDEST_TEXT))
    if (output.isLive) this.#ticker = setInterval(() => this.#draw(), TICK_MS).unref()
  }

  get view(): RunView | undefined {
    return this.#view
  }

  show(event: RunEvent, runId = ''): void {
    const isFirst = this.#view === undefined
    this.#view = reduceRun(this.#view, event, Date.now())
    if (event.event === 'turn_start' && isFirst) this.#line(this.#header(event.data.model, runId))
    if (event.event === 'turn_end') this.#context = event.data.input_tokens
    if (event.event === 'text_delta' || event.event === 'text') this.#text(event.event === 'text', event.data.text)
    else if (event.event === 'warning') this.#warn(event.data.code, event.data.message)
    else if (event.event === 'tool_result') this.#ended(event.data.id)
    else if (event.event === 'subagent_event' && event.data.event_type === 'tool_result') this.#ended(event.data.id)
    else if (event.event === 'subagent_end') this.#subagentEnded(event.data.subagent_id)
    this.#draw()
  }

  /** Prints lines for good. */
  print(...lines: string[]): void {
    this.#line(lines.join('\n'))
  }

  /** The line that asks for a key, below the current activity. This function is called each second. */
  setPrompt(prompt: (() => string) | undefined): void {
    this.#prompt = prompt
    this.#draw()
  }

  /** Lets other code use the terminal until the next event calls `draw`. */
  clear(): void {
    this.#endText()
    this.#live.update([])
  }

  /** Ends the text and prints the usage. */
  end(): void {
    this.#prompt = undefined
    clearInterval(this.#ticker)
    this.clear()
    if (!this.#endsLine) this.#output.out('\n')
    this.#endsLine = true
    const { style } = this.#output
    if (this.#view?.end && this.#view.end.event !== 'error')
      this.#output.err(`${style.green(style.symbols.ok)} ${style.dim(this.summary())}\n`)
  }

  summary(): string {
    const elapsedMs = performance.now() - this.#startedAt
    return totals(this.#view, { contextTokens: this.#context, elapsedMs, style: this.#output.style })
  }

  #header(model: string, runId: string): string {
    const { style } = this.#output
    const short = shortId(runId, style.symbols.cut)
    const width = Math.min(this.#output.columns() - 1, WIDEST_TEXT)
    const name = cut(plainLine(model), width - widthOf(short) - 4, style.symbols.cut)
    return `${style.cyan(style.symbols.dot)} ${padEnd(name, width - 2 - widthOf(short))}${style.dim(short)}`
  }

  /** A recorded run has no increments, so the rest of a block comes with its whole text. */
  #text(isWhole: boolean, text: string): void {
    const rest = isWhole ? text.slice(this.#written) : text
    if (rest !== '' && this.#hasText)
      this.#writeText(plain(this.#written === 0 && !this.#isFirstText ? `\n\n${rest}` : rest))
    if (rest !== '') this.#isFirstText = false
    this.#written = isWhole ? 0 : this.#written + text.length
    if (isWhole) this.#endText()
  }

  #writeText(text: string): void {
    this.#live.update([])
    if (this.#output.isTextWrapped)
      return this.#output.out(this.#flow.write(text.replace(/^\n\n/, this.#flow.isOpen ? '\n' : '')))
    this.#output.out(text)
    this.#endsLine = text.endsWith('\n')
  }

  #endText(): void {
    if (this.#output.isTextWrapped) this.#output.out(this.#flow.end())
  }

  #warn(code: string, message: string): void {
    const { style } = this.#output
    this.#line(style.yellow(`  ! ${plainLine(message)} (${code})`))
  }

  #ended(id: string): void {
    const found = placed(this.#view?.blocks ?? []).find(({ block }) => block.kind === 'tool' && block.call.id === id)
    if (found?.block.kind === 'tool') this.#line(this.#endedLine(found.block, found.depth))
  }

  #endedLine(block: ToolBlock, depth: number): string {
    const { style } = this.#output
    const output = block.result?.output ?? ''
    const isError = block.result?.is_error === true
    const symbol = isError ? style.red(style.symbols.bad) : style.green(style.symbols.ok)
    const size = output === '' ? '' : bytes(Buffer.byteLength(output))
    const time = block.durationMs === undefined ? '' : duration(block.durationMs)
    const line = callLine(
      { symbol, call: callOf(block), right: [size, time.padStart(7)].join('  ') },
      this.#place(depth),
    )
    if (!isError) return line
    const why = cut(plainLine(output), this.#place(depth).columns - 6 - depth * 2, style.symbols.cut)
    return `${line}\n${'  '.repeat(depth + 2)}${style.red(why)}`
  }

  #subagentEnded(id: string): void {
    const found = placed(this.#view?.blocks ?? []).find(
      ({ block }) => block.kind === 'subagent' && block.start.subagent_id === id,
    )
    if (found?.block.kind !== 'subagent') return
    const { style } = this.#output
    const isDone = found.block.end?.status === 'completed'
    const symbol = isDone ? style.green(style.symbols.ok) : style.red(style.symbols.bad)
    const right = found.block.end ? duration(found.block.end.duration_ms) : ''
    this.#line(this.#subagentLine({ ...found, block: found.block }, symbol, right))
  }

  #subagentLine({ block, depth }: Placed & { block: SubagentBlock }, symbol: string, right: string): string {
    const call = { toolName: `${this.#output.style.symbols.nested} ${subagentTitle(block)}`, input: {} }
    return callLine({ symbol, call, right }, this.#place(depth))
  }

  #line(line: string): void {
    this.#endText()
    if (!this.#endsLine && this.#output.isShared) {
      this.#output.out('\n')
      this.#endsLine = true
    }
    if (this.#output.isLive) this.#live.update(this.#liveLines(), `${line}\n`)
    else this.#output.err(`${line}\n`)
  }

  #draw(): void {
    if (!this.#output.isLive) return
    const lines = this.#liveLines()
    if (lines.length > 0) this.#endText()
    this.#live.update(lines)
  }

  #liveLines(): string[] {
    const { style } = this.#output
    const most = Math.max(3, this.#output.rows() - 3)
    const waiting = new Set(
      this.#view?.permissions.filter(({ state }) => state === 'pending').map(({ request }) => request.tool_use_id),
    )
    const busy = placed(this.#view?.blocks ?? [])
      .filter(({ block }) => isBusy(block) && !(block.kind === 'tool' && waiting.has(block.call.id)))
      .map((each) => this.#busyLine(each))
    const prompt = this.#prompt ? [cut(this.#prompt(), this.#output.columns() - 1, style.symbols.cut)] : []
    return [...busy.slice(0, most), ...prompt]
  }

  #busyLine({ block, depth }: Placed): string {
    const { style } = this.#output
    const symbol = style.cyan(style.symbols.busy)
    if (block.kind === 'subagent')
      return this.#subagentLine({ block, depth }, symbol, duration(Date.now() - block.start.start_time_ms))
    if (block.kind !== 'tool') return style.dim(`${'  '.repeat(depth + 1)}${symbol} thinking`)
    const note = block.progress ? `${plainLine(block.progress.detail)} `.slice(0, 20) : ''
    const time =
      block.startedAt === undefined ? '' : duration(Math.floor((Date.now() - block.startedAt) / 1_000) * 1_000)
    return callLine({ symbol, call: callOf(block), right: note + time }, this.#place(depth))
  }

  #place(depth: number) {
    return { style: this.#output.style, columns: this.#output.columns(), depth }
  }
}

function isBusy(block: Block): boolean {
  if (block.kind === 'tool') return block.result === undefined
  return block.kind === 'subagent' ? block.end === undefined : block.kind === 'thinking' && block.isOpen
}

const callOf = ({ call }: ToolBlock) => ({ toolName: call.tool_name, input: call.input })
