import { CallCount } from '../../agent/engine/call-count.ts'
import type { Models, Route } from '../../agent/engine/resources.ts'
import type { ModelPart, ModelProvider, ModelRoute, PriceOf, Usage } from '../../agent/providers/port.ts'
import { type Batched, eachOf } from '../../kernel/async/batch.ts'
import { createCache } from '../../kernel/cache.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { BudgetRefusal, Budgets } from './budgets.ts'

/** Counts what a tenant's model calls cost, and refuses each call that its budget does not allow. */
export interface Meter {
  provider(tenant: TenantId, provider: ModelProvider): ModelProvider
  models(tenant: TenantId, models: Models): Models
}

/** For a process without runtime configuration, in which no tenant has a budget. */
export const NO_METER: Meter = { provider: (_tenant, provider) => provider, models: (_tenant, models) => models }

const MAX_TENANTS = 10_000

/** The same provider of the same tenant has one metered form, so that what is remembered of providers holds for it too. */
export function createMeter(budgets: Account['budgets'], priceOf: PriceOf, onUnpriced: OnUnpriced = () => {}): Meter {
  const known = createCache<TenantId, WeakMap<ModelProvider, ModelProvider>>(MAX_TENANTS)
  const provider: Meter['provider'] = (tenant, plain) => {
    const ofTenant = known.get(tenant) ?? new WeakMap<ModelProvider, ModelProvider>()
    known.set(tenant, ofTenant)
    const metered = ofTenant.get(plain) ?? meterProvider(plain, { tenant, budgets, priceOf, onUnpriced })
    ofTenant.set(plain, metered)
    return metered
  }
  const route = (tenant: TenantId, { primary, fallback }: Route): Route => ({
    primary: meterRoute(tenant, primary, provider),
    fallback: fallback && meterRoute(tenant, fallback, provider),
  })
  return {
    provider,
    models: (tenant, models) => ({
      ...models,
      main: () => route(tenant, models.main()),
      subAgents: () => route(tenant, models.subAgents()),
      summaries: () => route(tenant, models.summaries()),
    }),
  }
}

const meterRoute = (tenant: TenantId, route: ModelRoute, meter: Meter['provider']): ModelRoute => ({
  ...route,
  provider: meter(tenant, route.provider),
})

/** Called for each call of a model whose price is unknown. */
type OnUnpriced = (tenant: TenantId, model: string) => void

type Account = {
  tenant: TenantId
  budgets: Pick<Budgets, 'refusal' | 'spend'>
  priceOf: PriceOf
  onUnpriced: OnUnpriced
}

function meterProvider(plain: ModelProvider, { tenant, budgets, priceOf, onUnpriced }: Account): ModelProvider {
  const priced = (model: string, usage: Usage) => {
    const costUsd = priceOf(plain, model, usage)
    if (costUsd === undefined) onUnpriced(tenant, model)
    return costUsd ?? 0
  }
  return {
    ...plain, // What it tells of its models as well.
    get contextWindow() {
      return plain.contextWindow
    },
    stream: (request, signal) =>
      new MeteredAnswer({
        refusal: () => budgets.refusal(tenant),
        open: () => plain.stream(request, signal)[Symbol.asyncIterator](),
        spend(count) {
          const usage = count.usageOf(request)
          if (!usage) return
          const costUsd = priced(request.model, usage)
          budgets.spend(tenant, { tokens: usage.input + usage.output, costUsd })
        },
      }),
  }
}

type Metered = {
  refusal(): Promise<BudgetRefusal | undefined>
  open(): AsyncIterator<Parts>
  spend(count: CallCount): void
}

type Parts = Batched<ModelPart>

const OVER: IteratorResult<Parts> = { done: true, value: undefined }

/** Not a generator, because that would add several promises to every delta. */
class MeteredAnswer implements AsyncIterableIterator<Parts> {
  readonly #call: Metered
  #parts: AsyncIterator<Parts> | undefined
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
    return this.#isOver ? Promise.resolve(OVER) : this.#start()
  }

  async return(): Promise<IteratorResult<Parts>> {
    this.#end()
    await this.#parts?.return?.()
    return OVER
  }

  async #start(): Promise<IteratorResult<Parts>> {
    const refusal = await this.#call.refusal()
    if (refusal) {
      this.#isOver = true
      return { done: false, value: failureOf(refusal) }
    }
    this.#parts = this.#call.open()
    return this.#parts.next().then(this.#count, this.#fail)
  }

  readonly #count = (result: IteratorResult<Parts>): IteratorResult<Parts> => {
    if (result.done) this.#end()
    else for (const part of eachOf(result.value)) this.#note(part)
    return result
  }

  #note(part: ModelPart): void {
    this.#counted.note(part)
    if (part.type === 'finish' || part.type === 'failure') this.#end()
  }

  readonly #fail = (cause: unknown): never => {
    this.#end()
    throw cause
  }

  #end(): void {
    if (!this.#isOver) this.#call.spend(this.#counted)
    this.#isOver = true
  }
}

function failureOf({ code, message, reason }: BudgetRefusal): ModelPart {
  const isRetryable = code === 'storage_unavailable'
  return { type: 'failure', failure: { code, message, reason, isRetryable, isFailover: false } }
}
