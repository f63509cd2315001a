import { createRequire } from 'node:module'
import type { Provider } from '@pydantic/genai-prices'
import { LRUCache } from 'lru-cache'
import { findProviderType } from '../../kernel/provider-types.ts'
import type { ModelPrice } from '../../platform/config/json-values.ts'
import type { PriceOf, Usage, WindowOf } from './port.ts'

/** Prices of the provider itself, then from MODEL_PRICES, then from the catalogue, which works offline. Local providers cost nothing. */
export function createPrices(configured: ReadonlyMap<string, ModelPrice>): PriceOf {
  const find = createFinder(priceIn)
  return ({ type, prices }, model, usage) => {
    const price = prices?.get(model) ?? configured.get(model)
    const cost = price ? costOf(price, usage) : isLocal(type) ? 0 : find(type, model)?.(usage)
    return cost === undefined ? undefined : cost * (usage.priceFactor ?? 1)
  }
}

/** Context windows from the price catalogue. A local provider's window depends on its configuration, so it is unknown. */
export function createWindows(): WindowOf {
  const find = createFinder(windowIn)
  return (type, model) => (isLocal(type) ? undefined : find(type, model))
}

/** How many looked-up models are remembered, including unknown ones. Limited, because clients may name any model. */
const MAX_MODELS = 1_000

/** Reads the catalogue's entry for a name; `undefined`: another name of the model is tried. */
type Read<T> = (name: string, at: { providerId?: string }) => T | undefined

/** Looks models up in the catalogue, once per model, because the catalogue compares a name with all of its patterns. */
function createFinder<T>(read: Read<T>): (type: string, model: string) => T | undefined {
  const known = new LRUCache<string, { found: T | undefined }>({ max: MAX_MODELS })
  return (type, model) => {
    const key = `${type} ${model}`
    const entry = known.get(key) ?? { found: first(catalogueNames(type, model), read) }
    known.set(key, entry)
    return entry.found
  }
}

const priceIn: Read<(usage: Usage) => number | undefined> = (name, at) => {
  const { calcPrice } = loadCatalogue()
  const match = calcPrice({}, name, at)
  if (!match) return undefined
  const provider: Provider = { ...match.provider, models: [match.model] }
  return (usage) => calcPrice(toCatalogueUsage(usage), name, { provider })?.total_price
}

const windowIn: Read<number> = (name, at) => loadCatalogue().calcPrice({}, name, at)?.model.context_window

/** A model in the catalogue: the window is in tokens, prices are in US dollars per million tokens. */
export type CatalogueModel = {
  id: string
  context_window: number | null
  input_price: number | null
  output_price: number | null
}

/** The models of a provider type with prices in the catalogue; none for a type that any provider may have. */
export function catalogueModels(type: string): CatalogueModel[] {
  const { providerId } = catalogueProvider(type)
  if (providerId === undefined) return []
  const { models = [] } = loadCatalogue().findProvider({ providerId }) ?? {}
  return models
    .filter(({ id }) => /[A-Za-z0-9]$/.test(id))
    .map((model) => ({
      // Only full ids: other entries match all names with the same beginning.
      id: model.id,
      context_window: model.context_window ?? null,
      ...pricesOf(model.prices),
    }))
}

function pricesOf(prices: unknown): Pick<CatalogueModel, 'input_price' | 'output_price'> {
  const { input_mtok: input, output_mtok: output } = (Array.isArray(prices) ? {} : prices) as Record<string, unknown>
  return {
    input_price: typeof input === 'number' ? input : null,
    output_price: typeof output === 'number' ? output : null,
  }
}

type Catalogue = typeof import('@pydantic/genai-prices')

/** Loading takes some 20 MiB and 40 ms, so it happens at first use; synchronously, because prices are read synchronously. */
const loadCatalogue = (): Catalogue => createRequire(import.meta.url)('@pydantic/genai-prices') as Catalogue

const isLocal = (type: string): boolean => findProviderType(type)?.isLocal === true

const MILLION = 1_000_000

/** `input` includes the cached tokens. Cached tokens without a separate price cost as much as other input. */
function costOf(price: ModelPrice, { input, cacheRead, cacheWrite, output }: Usage): number {
  const uncached = Math.max(0, input - cacheRead - cacheWrite)
  const read = cacheRead * (price.cache_read ?? price.input)
  const write = cacheWrite * (price.cache_write ?? price.input)
  return (uncached * price.input + read + write + output * price.output) / MILLION
}

const toCatalogueUsage = ({ input, cacheRead, cacheWrite, output }: Usage) => ({
  input_tokens: Math.max(input, cacheRead + cacheWrite),
  cache_read_tokens: cacheRead,
  cache_write_tokens: cacheWrite,
  output_tokens: output,
})

type CatalogueName = [model: string, at: { providerId?: string }]

/**
 * The names under which the catalogue may know a model. Gateways name models `vendor/model` or `vendor/model:variant`: OpenRouter's
 * section of the catalogue has such names, and the vendor's own section the last part.
 */
function catalogueNames(type: string, model: string): CatalogueName[] {
  const own = catalogueProvider(type)
  const slash = model.lastIndexOf('/')
  if (slash < 0) return [[model, own]]
  const plain = model.replace(/:[\w-]+$/, '')
  const openRouter = { providerId: 'openrouter' }
  return [
    [model, own],
    [model, openRouter],
    [plain, openRouter],
    [plain.slice(slash + 1), {}],
  ]
}

function first<T>(names: CatalogueName[], find: (...name: CatalogueName) => T | undefined): T | undefined {
  for (const name of names) {
    const found = find(...name)
    if (found !== undefined) return found
  }
  return undefined
}

function catalogueProvider(type: string): { providerId?: string } {
  const providerId = findProviderType(type)?.priceId
  return providerId === undefined ? {} : { providerId }
}
