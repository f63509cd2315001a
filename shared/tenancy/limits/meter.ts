import { type CallCount, tokensIn } from '../../agent/engine/call-count.ts'
import type { Models, Route } from '../../agent/engine/resources.ts'
import { estimateUsage } from '../../agent/engine/usage.ts'
import { ABANDONED } from '../../agent/providers/failures/hedge.ts'
import type { ModelProvider, ModelRequest, ModelRoute, PriceOf, Usage } from '../../agent/providers/port.ts'
import { createCache } from '../../kernel/cache.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { GateCall } from '../room/door.ts'
import type { ModelGate } from '../room/gate.ts'
import { capsOf, FREE_TURN, instanceScope, serverScope } from '../room/rooms.ts'
import { leastOf, mostOf, USUAL_OUTPUT } from './estimate.ts'
import { type Metered, MeteredAnswer } from './metered-answer.ts'
import type { Payer } from './periods.ts'
import { NOTHING_SPENT, type Spent } from './port.ts'
import type { Reservations } from './reservations.ts'

/** Counts what a tenant's model calls cost, and refuses each call that its budget does not allow. */
export interface Meter {
  provider(tenant: TenantId, provider: ModelProvider): ModelProvider
  models(tenant: TenantId, models: Models): Models
}

/** For a process without runtime configuration, in which no tenant has a budget. */
export const NO_METER: Meter = { provider: (_tenant, provider) => provider, models: (_tenant, models) => models }

const MAX_TENANTS = 10_000

/** The same provider of the same tenant has one metered form, so that data that is remembered for a provider is found again. */
export function createMeter({ onUnpriced = () => {}, onAbandoned = () => {}, ...deps }: MeterDeps): Meter {
  const known = createCache<TenantId, WeakMap<ModelProvider, ModelProvider>>(MAX_TENANTS)
  const provider: Meter['provider'] = (tenant, plain) => {
    const ofTenant = known.get(tenant) ?? new WeakMap<ModelProvider, ModelProvider>()
    known.set(tenant, ofTenant)
    const metered = ofTenant.get(plain) ?? meterProvider(plain, { tenant, onUnpriced, onAbandoned, ...deps })
    ofTenant.set(plain, metered)
    return metered
  }
  const route = (tenant: TenantId, given: Route): Route => ({
    ...given,
    primary: meterRoute(tenant, given.primary, provider),
    fallback: given.fallback && meterRoute(tenant, given.fallback, provider),
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

type MeterDeps = {
  reservations: Pick<Reservations, 'reserve'>
  /** Without `stateOf` each process knows the health of models by its own calls. */
  gate: Pick<ModelGate, 'enter'> & Partial<Pick<ModelGate, 'stateOf'>>
  priceOf: PriceOf
  onUnpriced?: OnUnpriced
  /** Called for each request that was abandoned because another one has answered first (D56). */
  onAbandoned?: () => void
}

type Account = Required<MeterDeps> & { tenant: TenantId }

/** A long answer loses weight with each shorter one that follows. */
const FORGETS = 0.9

function meterProvider(plain: ModelProvider, account: Account): ModelProvider {
  const { tenant, gate } = account
  const costs = new Costs(plain, account)
  const target = { scope: scopeOf(tenant, plain), caps: capsOf(plain.caps) }
  const enter = createEntrance(plain, target, account)
  const called: CalledProvider = { plain, account, costs, enter }
  return {
    ...plain, // Includes the provider's facts about its models.
    stateOf: gate.stateOf && plain.type !== 'demo' ? (model) => gate.stateOf?.({ ...target, model }) : undefined,
    get contextWindow() {
      return plain.contextWindow
    },
    ...(plain.pooled && { pooled: meteredPool(plain.pooled.bind(plain), { account, costs }) }),
    stream: (request, signal) => new MeteredAnswer(new MeteredCall(request, signal, called)),
  }
}

type CalledProvider = { plain: ModelProvider; account: Account; costs: Costs; enter: ReturnType<typeof createEntrance> }

/** One call of a metered provider. A class, because closures would take more memory for as long as the answer comes. */
class MeteredCall implements Metered {
  readonly #request: ModelRequest
  readonly #signal: AbortSignal
  readonly #of: CalledProvider
  #most: Spent | undefined

  constructor(request: ModelRequest, signal: AbortSignal, of: CalledProvider) {
    this.#request = request
    this.#signal = signal
    this.#of = of
  }

  get isAborted(): boolean {
    return this.#signal.aborted
  }

  reserve(): ReturnType<Metered['reserve']> {
    const { tenant, reservations } = this.#of.account
    return reservations.reserve(payerOf(tenant, this.#request), () => this.most, this.#signal)
  }

  enter(): ReturnType<Metered['enter']> {
    return this.#of.enter(this.#request, this, this.#signal)
  }

  open(onTold: Parameters<Metered['open']>[0]): ReturnType<Metered['open']> {
    this.#request.onSent?.()
    return this.#of.plain.stream({ ...this.#request, onTold }, this.#signal)[Symbol.asyncIterator]()
  }

  countedBy(count: CallCount): number | undefined {
    const usage = this.#usageOf(count)
    return usage && usage.input - (this.#of.plain.type === 'anthropic' ? usage.cacheRead : 0) + usage.output
  }

  spentBy(count: CallCount): Spent {
    if (this.#isAbandoned) this.#of.account.onAbandoned()
    return this.#of.costs.spentOn(this.#request, this.#usageOf(count))
  }

  /** Computed at first use, because it reads the whole history. */
  get most(): Spent {
    this.#most ??= this.#of.costs.mostOf(this.#request)
    return this.#most
  }

  get #isAbandoned(): boolean {
    return this.#signal.reason === ABANDONED
  }

  #usageOf(count: CallCount) {
    return count.usageOf(this.#request) ?? (this.#isAbandoned ? estimateUsage(tokensIn(this.#request), 0) : undefined)
  }
}

const payerOf = (tenant: TenantId, { caller }: ModelRequest): Payer => ({ tenant, customer: caller?.customer })

type Pooled = NonNullable<ModelProvider['pooled']>

/** A call that waits for a batch reserves nothing; when its answer comes, that reserves its cost. Without a budget it does not wait. */
const meteredPool = (pooled: Pooled, { account, costs }: { account: Account; costs: Costs }): Pooled =>
  async function* (request, signal) {
    const { tenant, reservations } = account
    const reserved = await reservations.reserve(payerOf(tenant, request), () => costs.mostOf(request), signal)
    if ('code' in reserved) return undefined
    reserved.settle(NOTHING_SPENT)
    const answered = yield* pooled(request, signal)
    return answered && meterProvider(answered, account)
  }

/** What the calls of a provider cost. */
class Costs {
  readonly #plain: ModelProvider
  readonly #account: Account
  #usualOutput = USUAL_OUTPUT

  constructor(plain: ModelProvider, account: Account) {
    this.#plain = plain
    this.#account = account
  }

  mostOf(request: ModelRequest): Spent {
    const provider = this.#plain
    const allowed = leastOf(provider.maxOutputTokens, request.choices?.maxOutputTokens)
    const call = { provider, model: request.model, inputTokens: tokensIn(request) }
    return mostOf({ ...call, maxOutputTokens: allowed ?? Math.ceil(this.#usualOutput) }, this.#account.priceOf)
  }

  spentOn({ model }: ModelRequest, usage: Usage | undefined): Spent {
    if (!usage) return NOTHING_SPENT
    const { tenant, priceOf, onUnpriced } = this.#account
    this.#usualOutput = Math.max(usage.output, this.#usualOutput * FORGETS)
    const costUsd = priceOf(this.#plain, model, usage)
    if (costUsd === undefined) onUnpriced(tenant, model)
    return { tokens: usage.input + usage.output, costUsd: costUsd ?? 0 }
  }
}

/** Creates the function that gets turns for an instance's calls. The demo needs none. */
function createEntrance(plain: ModelProvider, target: Pick<GateCall, 'scope' | 'caps'>, { tenant, gate }: Account) {
  return (request: ModelRequest, call: { readonly most: Spent }, signal: AbortSignal) => {
    if (plain.type === 'demo' || plain.isAnswered?.()) return FREE_TURN
    const { model, caller: { priority = 'normal', customer, deadlineMs } = {}, maxWaitMs } = request
    const { tokens } = call.most
    const waitMs = deadlineMs === undefined ? undefined : Math.max(0, deadlineMs - Date.now())
    return gate.enter({ ...target, model, tenant, caller: { priority, customer }, tokens, waitMs, maxWaitMs }, signal)
  }
}

/** Calls of a tenant's instance count for that tenant's account at the provider, those of the server's own models for an account that all tenants share. */
const scopeOf = (tenant: TenantId, { instance, type }: ModelProvider): string =>
  instance === undefined ? serverScope(type) : instanceScope(tenant, instance)
