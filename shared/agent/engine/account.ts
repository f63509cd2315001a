import type { AgentEvent, DoneEvent } from '../../kernel/events.ts'
import { quoted } from '../../kernel/text.ts'
import type { ModelCall } from '../providers/failures/failover.ts'
import type { CallPart } from '../providers/failures/retry.ts'
import type { CountedUsage, ModelRoute, PriceOf, Usage } from '../providers/port.ts'
import { CallCount, tokensIn } from './call-count.ts'
import { addSpent, addTurn, estimateUsage, NO_USAGE, startTotals, type Totals, turnEnd, wholeUsage } from './usage.ts'

/** The model calls of a run and of all its sub-agents. */
export class AgentTree {
  /** How many sub-agents were started. */
  started = 0
  /**
   * The cost of the calls that are no complete turn of the run itself: those of its sub-agents, summaries, and turns
   * whose model call was repeated.
   */
  spent: Totals = startTotals()
  #openCalls = 0
  #ended: PromiseWithResolvers<void> | undefined

  add({ usage, price = 0 }: Cost): void {
    this.spent = addSpent(this.spent, usage, price)
  }

  onCallBegun(): void {
    this.#openCalls++
  }

  onCallEnded(): void {
    this.#openCalls--
    if (this.#openCalls > 0) return
    this.#ended?.resolve()
    this.#ended = undefined
  }

  /** Resolves when no call is running. */
  async callsEnded(): Promise<void> {
    if (this.#openCalls === 0) return
    this.#ended ??= Promise.withResolvers()
    await this.#ended.promise
  }
}

/** `price` is in US dollars, `undefined` when it is unknown. */
type Cost = { usage: Usage; route: ModelRoute; price: number | undefined }

/** The usage and price of the model's answer in a turn. */
export type SpentTurn = { usage: Usage; price?: number | undefined }

/** `spent` is missing if a process of an older release has stored the answer. */
type ResumedAnswer = { spent?: SpentTurn | undefined; usage?: CountedUsage | undefined; outputChars: number }

/** A model call under way. */
export type OpenCall = {
  note(part: CallPart): void
  /** Ends the call, whether it failed or not. */
  end(): void
}

type AccountOptions = {
  /** The agent's own tree. */
  tree: AgentTree
  /** The tree of the run to which the agent belongs. */
  root: AgentTree
  priceOf: PriceOf
  /** Stores the totals of the complete turns, and has those that another process has stored. */
  progress: { readonly totals: Totals; endTurn(totals: Totals, stopReason: StopReason): void } | undefined
}

type StopReason = DoneEvent['stop_reason'] | undefined

/** Adds up the tokens and the price of one agent's model calls. A call is counted when it ends, even if its turn does not complete (D4.10). */
export class Account {
  readonly #options: AccountOptions
  /** The totals of the complete turns. */
  #totals: Totals
  /** The cost of the current turn's call, once that has ended. */
  #turn: Cost | undefined

  constructor(options: AccountOptions) {
    this.#options = options
    this.#totals = options.progress?.totals ?? startTotals()
  }

  /** The number of complete turns. */
  get turns(): number {
    return this.#totals.turns
  }

  /** The usage of the current turn, in the form that is stored for another process. */
  get turn(): SpentTurn {
    const { usage, price } = this.#turn ?? { usage: NO_USAGE, price: 0 }
    return { usage, ...(price !== undefined && { price }) }
  }

  /** All that the agent has used; for the run itself this includes its sub-agents. */
  get spent(): Totals {
    const { usage, costUsd } = this.#options.tree.spent
    const spent = addSpent(this.#totals, usage, costUsd)
    return this.#turn ? addSpent(spent, this.#turn.usage, this.#turn.price ?? 0) : spent
  }

  /** Resolves when all calls have ended, so that `spent` is complete: calls of sub-agents end later than the run's signal aborts. */
  async settled(): Promise<void> {
    const { tree, root } = this.#options
    if (tree === root) await root.callsEnded()
  }

  /** Begins the model call of a turn. */
  turnCall(call: ModelCall): OpenCall {
    return this.#open(call, (cost) => {
      if (this.#turn) this.#options.tree.add(this.#turn)
      this.#turn = cost
    })
  }

  /** Begins a model call that is no turn, for example for a summary. */
  sideCall(call: ModelCall): OpenCall {
    return this.#open(call, (cost) => this.#options.tree.add(cost))
  }

  /** Sets the usage of the current turn, whose model call another process has made. */
  resumeTurn({ spent, usage, outputChars }: ResumedAnswer, route: ModelRoute): void {
    const { price } = spent ?? {}
    this.#turn = spent
      ? { usage: spent.usage, route, price }
      : this.#priced(wholeUsage(usage, estimateUsage(0, outputChars)), route)
  }

  /** Stores the end of the current turn, then yields it. The first turn of a model without a price carries its warning (D4.10). */
  *endTurn(served: ModelRoute, stopReason: StopReason): Generator<AgentEvent, void> {
    const { usage, route, price } = this.#turn ?? this.#priced(NO_USAGE, served)
    const { model } = route
    const isNews = price === undefined && !this.#totals.unpriced.has(model)
    this.#totals = addTurn(this.#totals, usage, { model, price })
    this.#turn = undefined
    this.#options.progress?.endTurn(this.#totals, stopReason)
    if (isNews) yield priceUnknown(model)
    yield turnEnd(this.turns, usage, price ?? 0)
  }

  #open(call: ModelCall, count: (cost: Cost) => void): OpenCall {
    this.#options.root.onCallBegun()
    return new CountedCall(call, this.#options, count)
  }

  #priced(usage: Usage, route: ModelRoute): Cost {
    return priced(this.#options, usage, route)
  }
}

class CountedCall implements OpenCall {
  readonly #options: AccountOptions
  readonly #request: ModelCall['request']
  /** Adds the cost of the call to its agent. */
  readonly #count: (cost: Cost) => void
  readonly #parts = new CallCount()
  #route: ModelRoute

  constructor({ primary, request }: ModelCall, options: AccountOptions, count: (cost: Cost) => void) {
    this.#options = options
    this.#request = request
    this.#route = primary
    this.#count = count
  }

  note(part: CallPart): void {
    if (part.type === 'served_by') this.#route = part.route
    if (part.type === 'abandoned') this.#addAbandoned(part.route)
    this.#parts.note(part)
  }

  end(): void {
    const { tree, root } = this.#options
    const usage = this.#parts.usageOf(this.#request)
    if (usage) {
      const cost = priced(this.#options, usage, this.#route)
      this.#count(cost)
      if (root !== tree) root.add(cost)
    }
    root.onCallEnded()
  }

  #addAbandoned(route: ModelRoute): void {
    const { tree, root } = this.#options
    const cost = priced(this.#options, estimateUsage(tokensIn(this.#request), 0), route)
    for (const each of new Set([tree, root])) each.add(cost)
  }
}

const priced = ({ priceOf }: Pick<AccountOptions, 'priceOf'>, usage: Usage, route: ModelRoute): Cost => ({
  usage,
  route,
  price: priceOf(route.provider, route.model, usage),
})

const priceUnknown = (model: string): AgentEvent => ({
  type: 'warning',
  code: 'price_unknown',
  message: `the price of ${quoted(model)} is not known: its cost is reported as 0`,
  detail: { model, suggestion: 'Set MODEL_PRICES, or `prices` of the instance.' },
})
