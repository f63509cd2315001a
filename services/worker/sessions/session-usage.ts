import { type EarlierProgress, type RunState, spentBefore } from '../../../shared/agent/engine/run-progress.ts'
import type { SessionSummary } from '../../../shared/cluster/commands/sessions.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'

type Usage = SessionSummary['usage']

/** The usage of a session's runs, and the model of its last turn. */
export type SessionUsageState = { usage: Usage; model: string | null }

const NOTHING: Usage = { input_tokens: 0, output_tokens: 0, cost_usd: 0, turns: 0 }

/** Adds up what the runs of a session use, turn by turn. Summaries and sub-agents are added at the end of their run. */
export class SessionUsage {
  #usage: Usage
  #model: string | null

  constructor({ usage, model }: SessionUsageState = { usage: NOTHING, model: null }) {
    this.#usage = usage
    this.#model = model
  }

  get state(): SessionUsageState {
    return { usage: this.#usage, model: this.#model }
  }

  /**
   * Returns a function that counts the events of one run. A session has one run at a time. The usage of `earlier` turns of the run is already
   * counted.
   */
  counter(earlier?: RunState): (event: RunEvent) => void {
    const before = earlier ? differenceOf(this.#usage, usageOf(earlier)) : this.#usage
    return (event) => {
      if (event.type === 'turn_start') this.#model = event.model
      if (event.type === 'turn_end') this.#usage = sumOf(this.#usage, { ...event, turns: 1 })
      const totals = totalsOf(event)
      if (totals) this.#usage = sumOf(before, totals)
    }
  }

  /** Adds the rest of a run that another process has begun and that ends without continuing here. */
  addRestOf(earlier: EarlierProgress): void {
    this.#usage = sumOf(this.#usage, differenceOf(figuresOf(spentBefore(earlier)), usageOf(earlier.state)))
  }
}

/** What the complete turns of a run have used. */
const usageOf = ({ totals }: RunState): Usage => figuresOf(totals)

const figuresOf = ({ usage, costUsd, turns }: Pick<RunState['totals'], 'usage' | 'costUsd' | 'turns'>): Usage => ({
  input_tokens: usage.input,
  output_tokens: usage.output,
  cost_usd: costUsd,
  turns,
})

const sumOf = (one: Usage, other: Usage): Usage => ({
  input_tokens: one.input_tokens + other.input_tokens,
  output_tokens: one.output_tokens + other.output_tokens,
  cost_usd: one.cost_usd + other.cost_usd,
  turns: one.turns + other.turns,
})

const differenceOf = (one: Usage, other: Usage): Usage => ({
  input_tokens: one.input_tokens - other.input_tokens,
  output_tokens: one.output_tokens - other.output_tokens,
  cost_usd: one.cost_usd - other.cost_usd,
  turns: one.turns - other.turns,
})

/** The totals of the whole run, which its last event has. */
function totalsOf(event: RunEvent): Usage | undefined {
  if (event.type !== 'done' && event.type !== 'error' && event.type !== 'plan_queued') return undefined
  const { total_input_tokens: input, total_output_tokens: output, cost_usd: cost = 0, turn_count: turns = 0 } = event
  if (input === undefined || output === undefined) return undefined
  return { input_tokens: input, output_tokens: output, cost_usd: cost, turns }
}
