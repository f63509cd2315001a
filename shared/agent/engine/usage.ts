import type { DoneEvent, ErrorEvent, PlanQueuedEvent, RunTotals, TurnEndEvent } from '../../kernel/events.ts'
import type { CountedUsage, Usage } from '../providers/port.ts'
import { tokensOf } from './context/size.ts'

/** The tokens, cost and turns of a run so far, and the models whose price is unknown. */
export type Totals = { usage: Usage; costUsd: number; turns: number; unpriced: ReadonlySet<string> }

export const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }

/** All runs share it: whoever adds to totals makes new ones. */
const NO_TOTALS: Totals = { usage: NO_USAGE, costUsd: 0, turns: 0, unpriced: new Set() }

export const startTotals = (): Totals => NO_TOTALS

/** Adds one turn. `price` is in US dollars, `undefined` when it is unknown. */
export function addTurn(
  totals: Totals,
  turn: Usage,
  { model, price }: { model: string; price: number | undefined },
): Totals {
  const { turns, unpriced } = totals
  return {
    ...addSpent(totals, turn, price ?? 0),
    turns: turns + 1,
    unpriced: price === undefined ? new Set([...unpriced, model]) : unpriced,
  }
}

/** Adds tokens and cost that are no turn of the run, such as those of its sub-agents. */
export function addSpent(totals: Totals, spent: Usage, costUsd: number): Totals {
  const { usage } = totals
  return {
    ...totals,
    usage: {
      input: usage.input + spent.input,
      cacheRead: usage.cacheRead + spent.cacheRead,
      cacheWrite: usage.cacheWrite + spent.cacheWrite,
      output: usage.output + spent.output,
    },
    costUsd: totals.costUsd + costUsd,
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

export const done = (totals: Totals, stopReason: DoneEvent['stop_reason']): DoneEvent => ({
  type: 'done',
  ...fieldsOf(totals),
  stop_reason: stopReason,
})

/** Adds the run's usage to a last event other than `done`. */
export const withTotals = <T extends ErrorEvent | PlanQueuedEvent>(end: T, totals: Totals): T => ({
  ...end,
  ...fieldsOf(totals),
})

export function fieldsOf({ usage, costUsd, turns }: Totals): RunTotals {
  return {
    total_input_tokens: usage.input,
    total_output_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    cost_usd: costUsd,
    turn_count: turns,
    ...cacheTokens(usage),
  }
}

function cacheTokens({ cacheRead, cacheWrite }: Usage) {
  return {
    ...(cacheRead > 0 && { cache_read_tokens: cacheRead }),
    ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }),
  }
}

/** Estimates the usage of an answer that was cut off before the provider reported it. */
export function estimateUsage(inputTokens: number, outputChars: number): Usage {
  return { ...NO_USAGE, input: inputTokens, output: tokensOf(outputChars) }
}

/** Each count that the provider has left out is estimated (D5.8). Every turn has an input. */
export const wholeUsage = (counted: CountedUsage | undefined, estimated: Usage): Usage => ({
  ...(counted ?? estimated),
  input: counted?.input || estimated.input,
  output: counted?.output ?? estimated.output,
})
