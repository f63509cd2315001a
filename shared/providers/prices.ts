import { createRequire } from 'node:module'
import type { PriceOf, Usage } from './port.ts'

/** US dollars per million tokens (D1.3). A cached token without a price of its own costs as much as any other. */
export type Price = { input: number; output: number; cache_read?: number; cache_write?: number }

type Catalogue = typeof import('@pydantic/genai-prices')

/** Some 20 MiB and 40 ms, which no process pays before it needs it; it is asked synchronously. */
export const openCatalogue = (): Catalogue => createRequire(import.meta.url)('@pydantic/genai-prices') as Catalogue

/** The prices of MODEL_PRICES first, then those of the catalogue, which works offline. */
export function createPrices(known: ReadonlyMap<string, Price>): PriceOf {
  let catalogue: Catalogue | undefined
  return (type, model, usage) => {
    const price = known.get(model)
    if (price) return costOf(price, usage)
    if (isFree(type)) return 0
    catalogue ??= openCatalogue()
    return cataloguePrice(catalogue, type, model, usage)
  }
}

/** The demo calls nobody, and Ollama runs on the operator's own machine: that they cost nothing is known. */
const isFree = (type: string) => type === 'demo' || type === 'ollama'

const MILLION = 1_000_000

/** `input` holds the cached tokens too, which have prices of their own. */
function costOf(price: Price, { input, cacheRead, cacheWrite, output }: Usage): number {
  const plain = Math.max(0, input - cacheRead - cacheWrite)
  const read = cacheRead * (price.cache_read ?? price.input)
  const write = cacheWrite * (price.cache_write ?? price.input)
  return (plain * price.input + read + write + output * price.output) / MILLION
}

const PROVIDERS = new Set(['openai', 'anthropic', 'google'])

/** Behind other types stands any provider: the model's name alone says which. */
export const catalogueKey = (type: string): { providerId?: string } => (PROVIDERS.has(type) ? { providerId: type } : {})

function cataloguePrice(catalogue: Catalogue, type: string, model: string, usage: Usage): number | undefined {
  const tokens = {
    input_tokens: Math.max(usage.input, usage.cacheRead + usage.cacheWrite),
    cache_read_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    output_tokens: usage.output,
  }
  return catalogue.calcPrice(tokens, model, catalogueKey(type))?.total_price
}
