import type { DoneEvent, TurnEndEvent } from '../events.ts'
import type { Message, Usage } from '../providers/port.ts'

/** What a run has used so far. */
export type Totals = { usage: Usage; costUsd: number; turns: number; isPriceUnknown: boolean }

const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }

export const startTotals = (): Totals => ({ usage: NO_USAGE, costUsd: 0, turns: 0, isPriceUnknown: false })

/** `price` in US dollars, `undefined` when it is not known. */
export function addTurn(
  { usage, costUsd, turns, isPriceUnknown }: Totals,
  turn: Usage,
  price: number | undefined,
): Totals {
  return {
    usage: {
      input: usage.input + turn.input,
      cacheRead: usage.cacheRead + turn.cacheRead,
      cacheWrite: usage.cacheWrite + turn.cacheWrite,
      output: usage.output + turn.output,
    },
    costUsd: costUsd + (price ?? 0),
    turns: turns + 1,
    isPriceUnknown: isPriceUnknown || price === undefined,
  }
}

export function turnEnd(turnNumber: number, usage: Usage, costUsd: number): TurnEndEvent {
  return {
    type: 'turn_end',
    turn_number: turnNumber,
    input_tokens: usage.input,
    output_tokens: usage.output,
    cost_usd: costUsd,
    ...cacheTokens(usage),
  }
}

export function done({ usage, costUsd, turns }: Totals, stopReason: DoneEvent['stop_reason']): DoneEvent {
  return {
    type: 'done',
    total_input_tokens: usage.input,
    total_output_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    cost_usd: costUsd,
    turn_count: turns,
    stop_reason: stopReason,
    ...cacheTokens(usage),
  }
}

function cacheTokens({ cacheRead, cacheWrite }: Usage) {
  return {
    ...(cacheRead > 0 && { cache_read_tokens: cacheRead }),
    ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }),
  }
}

const CHARS_PER_TOKEN = 4

/** For an answer that the engine cut off at a stop sequence, before the provider said what it cost. */
export function estimateUsage(messages: readonly Message[], outputChars: number): Usage {
  const inputChars = messages.reduce((chars, message) => chars + charsOf(message), 0)
  return {
    ...NO_USAGE,
    input: Math.ceil(inputChars / CHARS_PER_TOKEN),
    output: Math.ceil(outputChars / CHARS_PER_TOKEN),
  }
}

function charsOf(message: Message): number {
  if (message.role === 'user') return message.text.length
  if (message.role === 'tool') return message.results.reduce((chars, { output }) => chars + output.length, 0)
  return message.blocks.reduce(
    (chars, block) => chars + (block.type === 'tool_use' ? JSON.stringify(block.input).length : block.text.length),
    0,
  )
}
