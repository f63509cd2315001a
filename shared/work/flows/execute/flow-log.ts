import {
  type AgentEvent,
  type Artifact,
  type FlowEvent,
  isTerminal,
  MAX_ARTIFACTS,
  type OutputProblem,
  type RunTotals,
  type TurnEndEvent,
  type WarningEvent,
} from '../../../kernel/events.ts'
import type { Dispatch, TimelineEntry } from '../port.ts'

const SPENT = ['input_tokens', 'output_tokens', 'cost_usd', 'cache_read_tokens', 'cache_write_tokens'] as const
type Spent = Record<(typeof SPENT)[number], number>
type Totals = Pick<Dispatch, 'turns'> & Spent

const NOTHING = Object.fromEntries(SPENT.map((field) => [field, 0])) as Spent

export type FlowLogOptions = {
  /** Resolves when the reader has room for more. */
  send(event: FlowEvent): Promise<void>
  /** Epoch milliseconds. */
  now(): number
}

/** `problems` are those of the previous try. */
type Turn = { agent: string; model: string; problems: readonly OutputProblem[] }

/** Later events are sent, but not kept for the replay. */
const MAX_ENTRIES = 1_000

/** Sends the events of one execution, keeps them for its replay, and adds up what it costs. */
export class FlowLog {
  readonly timeline: TimelineEntry[] = []
  /** The first files that the agents have delivered. */
  readonly artifacts: Artifact[] = []
  #totals: Totals = { turns: 0, ...NOTHING }
  readonly #options: FlowLogOptions
  readonly #turns = new Map<string, number>()
  readonly #unpriced = new Set<unknown>()

  constructor(options: FlowLogOptions) {
    this.#options = options
  }

  /** The totals over all agents and all their tries. */
  get totals(): Totals {
    return { ...this.#totals }
  }

  /** The time of an event that happens now. */
  get at(): string {
    return new Date(this.#options.now()).toISOString()
  }

  async add(event: FlowEvent): Promise<void> {
    const { type, at, ...data } = event
    if (this.timeline.length < MAX_ENTRIES) this.timeline.push({ event: type, at, data })
    await this.#options.send(event)
  }

  /** A model whose price is unknown is reported once (D4.10). */
  async warn(agent: string, warning: WarningEvent): Promise<void> {
    if (warning.code === 'price_unknown') {
      const { model } = warning.detail
      if (this.#unpriced.has(model)) return
      this.#unpriced.add(model)
    }
    await this.add({ ...warning, agent, at: this.at })
  }

  /** An agent's turns are numbered across all its tries. */
  async turnEnded({ agent, model, problems }: Turn, turn: TurnEndEvent): Promise<void> {
    const turn_number = (this.#turns.get(agent) ?? 0) + 1
    this.#turns.set(agent, turn_number)
    this.#totals.turns++
    const { type: _type, ...spent } = turn
    const corrects = problems.length > 0 && { problems }
    await this.add({ ...spent, type: 'progress', agent, turn_number, model, ...corrects, at: this.at })
  }

  deliver({ type: _type, tool_use_id: _call, ...artifact }: Extract<AgentEvent, { type: 'artifact' }>): void {
    if (this.artifacts.length < MAX_ARTIFACTS) this.artifacts.push(artifact)
  }

  spend(spent: Spent): void {
    this.#totals = { ...this.#totals, ...sum(this.#totals, spent, 1) }
  }
}

/** Adds up what one run of the engine has cost, from its events. */
export class RunCost {
  #counted: Spent = NOTHING

  /** The tokens and dollars that an event adds. The totals at the end also include summaries and an interrupted turn. */
  of(event: AgentEvent): Spent | undefined {
    const spent = this.#added(event)
    if (spent) this.#counted = sum(this.#counted, spent, 1)
    return spent
  }

  #added(event: AgentEvent): Spent | undefined {
    if (event.type === 'turn_end') return sum(NOTHING, event, 1)
    if (event.type === 'subagent_event' && event.event_type === 'turn_end')
      return sum(NOTHING, event as unknown as TurnEndEvent, 1)
    if (!isTerminal(event) || !('total_input_tokens' in event)) return undefined
    const { total_input_tokens: input_tokens, total_output_tokens: output_tokens, ...others } = event as RunTotals
    return sum(sum(NOTHING, { ...others, input_tokens, output_tokens }, 1), this.#counted, -1)
  }
}

const sum = (a: Spent, b: Partial<Spent>, sign: 1 | -1): Spent =>
  Object.fromEntries(SPENT.map((field) => [field, a[field] + sign * (b[field] ?? 0)])) as Spent

/** Reads the events of one run of the engine: reports its turns and warnings. */
export class TurnReader {
  readonly #agent: string
  readonly #log: FlowLog
  readonly #cost = new RunCost()
  #model = ''
  /** The problems that the agent was last asked to correct. */
  #problems: readonly OutputProblem[] = []

  constructor(agent: string, log: FlowLog) {
    this.#agent = agent
    this.#log = log
  }

  async read(event: AgentEvent): Promise<void> {
    const spent = this.#cost.of(event)
    if (spent) this.#log.spend(spent)
    if (event.type === 'artifact') this.#log.deliver(event)
    if (event.type === 'turn_start') this.#model = event.model
    if (event.type === 'turn_end')
      await this.#log.turnEnded({ agent: this.#agent, problems: this.#problems, model: this.#model }, event)
    if (event.type !== 'warning') return
    if (event.code === 'output_invalid') this.#problems = event.detail['problems'] as OutputProblem[]
    else await this.#log.warn(this.#agent, event)
  }
}
