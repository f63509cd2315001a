import { charsOf } from '../../agent/engine/context/size.ts'
import type { Models, Route } from '../../agent/engine/resources.ts'
import { estimateUsage } from '../../agent/engine/usage.ts'
import type { ModelPart, ModelProvider, ModelRequest, ModelRoute, PriceOf, Usage } from '../../agent/providers/port.ts'
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
    type: plain.type,
    prices: plain.prices,
    get contextWindow() {
      return plain.contextWindow
    },
    stream: (request, signal) =>
      new MeteredAnswer({
        refusal: () => budgets.refusal(tenant),
        open: () => plain.stream(request, signal)[Symbol.asyncIterator](),
        spend(usage) {
          const costUsd = priced(request.model, usage)
          budgets.spend(tenant, { tokens: usage.input + usage.output, costUsd })
        },
        estimate: (outputChars) => estimateOf(request, outputChars),
      }),
  }
}

type Metered = {
  refusal(): Promise<BudgetRefusal | undefined>
  open(): AsyncIterator<ModelPart>
  spend(usage: Usage): void
  estimate(outputChars: number): Usage
}

const OVER: IteratorResult<ModelPart> = { done: true, value: undefined }

/** Not a generator, because that would add several promises to every delta. An answer that is cut off is estimated. */
class MeteredAnswer implements AsyncIterableIterator<ModelPart> {
  readonly #call: Metered
  #parts: AsyncIterator<ModelPart> | undefined
  #outputChars = 0
  #hasBegun = false
  #isOver = false

  constructor(call: Metered) {
    this.#call = call
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<ModelPart>> {
    if (this.#parts) return this.#parts.next().then((result) => this.#count(result))
    return this.#isOver ? Promise.resolve(OVER) : this.#start()
  }

  async return(): Promise<IteratorResult<ModelPart>> {
    this.#end()
    await this.#parts?.return?.()
    return OVER
  }

  async #start(): Promise<IteratorResult<ModelPart>> {
    const refusal = await this.#call.refusal()
    if (refusal) {
      this.#isOver = true
      return { done: false, value: failureOf(refusal) }
    }
    this.#parts = this.#call.open()
    return this.#count(await this.#parts.next())
  }

  #count(result: IteratorResult<ModelPart>): IteratorResult<ModelPart> {
    const part = result.done ? undefined : result.value
    if (part?.type === 'finish') {
      this.#isOver = true
      this.#call.spend(part.usage ?? this.#call.estimate(this.#outputChars))
    } else if (!part || part.type === 'failure') this.#end()
    else {
      this.#hasBegun = true
      this.#outputChars += charsIn(part)
    }
    return result
  }

  /** The answer ends without the provider's count. One that had not begun costs nothing. */
  #end(): void {
    if (this.#hasBegun && !this.#isOver) this.#call.spend(this.#call.estimate(this.#outputChars))
    this.#isOver = true
  }
}

function charsIn(part: ModelPart): number {
  if (part.type === 'text_delta' || part.type === 'thinking_delta') return part.text.length
  return part.type === 'tool_call' ? part.input.length : 0
}

const CHARS_PER_TOKEN = 4

const estimateOf = ({ system = '', messages }: ModelRequest, outputChars: number): Usage =>
  estimateUsage(Math.ceil((system.length + charsOf(messages)) / CHARS_PER_TOKEN), outputChars)

function failureOf({ code, message, reason }: BudgetRefusal): ModelPart {
  const isRetryable = code === 'storage_unavailable'
  return { type: 'failure', failure: { code, message, reason, isRetryable, isFailover: false } }
}
