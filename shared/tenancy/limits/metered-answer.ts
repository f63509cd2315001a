import { CallCount } from '../../agent/engine/call-count.ts'
import type { ModelPart } from '../../agent/providers/port.ts'
import { type Batched, eachOf } from '../../kernel/async/batch.ts'
import { END } from '../../kernel/async/pull-iterator.ts'
import type { Turn, TurnRefusal } from '../room/port.ts'
import { FREE_TURN } from '../room/rooms.ts'
import type { BudgetRefusal } from './budgets.ts'
import { NOTHING_SPENT, type Spent } from './port.ts'
import type { Reservations } from './reservations.ts'
import type { Reservation } from './tenant-holds.ts'

/** One call of a model: its budget, its turn at the provider, and its answer. */
export type Metered = {
  reserve(): ReturnType<Reservations['reserve']>
  enter(): Turn | Promise<Turn | TurnRefusal> | TurnRefusal
  readonly isAborted: boolean
  open(onTold: Turn['tell']): AsyncIterator<Parts>
  spentBy(count: CallCount): Spent
  /** The tokens that the provider counts against its limits; Anthropic does not count tokens from its cache. */
  countedBy(count: CallCount): number | undefined
}

type Parts = Batched<ModelPart>

/**
 * The answer of a call that reserves its budget first, then waits for its turn, and settles both when it has ended. Not a generator, because that would
 * add several promises to every delta.
 */
export class MeteredAnswer implements AsyncIterableIterator<Parts> {
  readonly #call: Metered
  #parts: AsyncIterator<Parts> | undefined
  #reservation: Reservation | undefined
  #turn: Turn | undefined
  readonly #counted = new CallCount()
  #isOver = false

  constructor(call: Metered) {
    this.#call = call
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Parts>> {
    if (this.#parts) return this.#parts.next().then(this.#count, this.#fail)
    return this.#isOver ? Promise.resolve(END) : this.#start()
  }

  async return(): Promise<IteratorResult<Parts>> {
    this.#end()
    await this.#parts?.return?.()
    return END
  }

  /** The budget comes first: a call that waits for budget must not occupy the provider's room, which other tenants share. */
  async #start(): Promise<IteratorResult<Parts>> {
    const reserving = this.#call.reserve()
    const reserved = reserving instanceof Promise ? await reserving : reserving
    if ('code' in reserved) return this.#refuse(failureOf(reserved))
    const entered = this.#isOver ? FREE_TURN : this.#call.enter()
    const turn = entered instanceof Promise ? await entered : entered
    if ('retryAfterMs' in turn) {
      reserved.settle(NOTHING_SPENT)
      return this.#refuse(noTurn(turn))
    }
    if (this.#isOver || this.#call.isAborted) {
      turn.end(undefined)
      reserved.settle(NOTHING_SPENT) // The reader has left meanwhile, so nothing is spent.
      this.#isOver = true
      return END
    }
    this.#turn = turn
    this.#reservation = reserved
    this.#parts = this.#call.open((told) => turn.tell(told))
    return this.#parts.next().then(this.#count, this.#fail)
  }

  #refuse(failure: ModelPart): IteratorResult<Parts> {
    this.#isOver = true
    return { done: false, value: failure }
  }

  readonly #count = (result: IteratorResult<Parts>): IteratorResult<Parts> => {
    if (result.done) this.#end()
    else for (const part of eachOf(result.value)) this.#note(part)
    return result
  }

  #note(part: ModelPart): void {
    this.#counted.note(part)
    if (part.type === 'failure' && part.failure.code === 'provider_rate_limited')
      this.#turn?.refused(part.failure.retryAfterMs, part.failure.told)
    if (part.type === 'finish' || part.type === 'failure') this.#end()
  }

  readonly #fail = (cause: unknown): never => {
    this.#end()
    throw cause
  }

  #end(): void {
    if (!this.#isOver) {
      this.#reservation?.settle(this.#call.spentBy(this.#counted))
      this.#turn?.end(this.#call.countedBy(this.#counted))
    }
    this.#isOver = true
  }
}

function noTurn({ retryAfterMs }: TurnRefusal): ModelPart {
  const message = 'the provider has no room for this call: its limits of requests or tokens are used by others'
  const fields = { code: 'provider_rate_limited', reason: 'no_turn', isRetryable: false, isFailover: true } as const
  return { type: 'failure', failure: { ...fields, message, retryAfterMs } }
}

function failureOf({ code, message, reason, retryAfterSecs }: BudgetRefusal): ModelPart {
  const isRetryable = code === 'storage_unavailable' || reason === 'budget_reserved'
  const begins = !isRetryable && { retryAfterMs: 1_000 * retryAfterSecs }
  return { type: 'failure', failure: { code, message, reason, isRetryable, isFailover: false, ...begins } }
}
