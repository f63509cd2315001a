import type { PricedProvider, PriceOf } from '../../agent/providers/port.ts'
import type { RoleRoute, TenantConfig, TenantLimits } from '../tenant-config/config.ts'

/** A warning in an answer about something that was accepted, but perhaps not intended. */
export type LimitWarning = { code: 'price_unknown'; message: string; param: string }

/** A model of the server itself, which tenants without a main route use. */
export type ServerModel = { type: string; model: string }

/** Warns of each model of the tenant's runs whose price is unknown, so that the dollar budget cannot count it. */
export function unpricedWarnings(
  limits: TenantLimits,
  config: TenantConfig,
  { priceOf, serverModels }: { priceOf: PriceOf; serverModels: readonly ServerModel[] },
): LimitWarning[] {
  if (!countsDollars(limits)) return []
  const isUnpriced = (provider: PricedProvider, model: string) => priceOf(provider, model, NOTHING) === undefined
  const { transcription: _notARun, ...routes } = config.routing
  const own = Object.values(routes)
    .flatMap(targetsOf)
    .filter(({ instance, model }) => {
      const found = config.instances.find(({ name }) => name === instance)
      return found && isUnpriced({ type: found.type, prices: pricesOf(found) }, model)
    })
    .map(({ instance, model }) => unpriced(`${model} at instance ${instance}`, cureAt(instance, model)))
  const used = config.routing.main ? [] : serverModels
  const ofServer = used
    .filter(({ type, model }) => isUnpriced({ type }, model))
    .map(({ model }) => unpriced(`the server's own model ${model}`, 'the operator can set it in MODEL_PRICES'))
  const all = [...own, ...ofServer]
  return all.filter(({ message }, at) => all.findIndex((other) => other.message === message) === at)
}

const countsDollars = ({ usd_per_day, customers }: TenantLimits): boolean =>
  [{ usd_per_day }, customers?.default ?? {}, ...Object.values(customers?.overrides ?? {})].some(
    (each) => each.usd_per_day || ('usd_per_month' in each && each.usd_per_month),
  )

const NOTHING = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }

/** The prices of an instance, in a provider's form. */
export const pricesOf = ({ prices }: Pick<TenantConfig['instances'][number], 'prices'>): PricedProvider['prices'] =>
  prices && new Map(Object.entries(prices))

const targetsOf = (route: RoleRoute): { instance: string; model: string }[] => [
  { instance: route.instance, model: route.model },
  ...(route.fallback_instance !== undefined && route.fallback_model !== undefined
    ? [{ instance: route.fallback_instance, model: route.fallback_model }]
    : []),
]

const cureAt = (instance: string, model: string) =>
  `give it with PUT /config/instances/${instance} in prices: {${JSON.stringify(model)}: {"input": …, "output": …}}, in US dollars per million tokens`

const unpriced = (what: string, cure: string): LimitWarning => ({
  code: 'price_unknown',
  message: `the price of ${what} is not known, so usd_per_day does not count it: ${cure}`,
  param: '/usd_per_day',
})
