import { isJsonObject, parseJson } from '../../kernel/json.ts'
import { findOptionsProblem, type ModelOptions } from '../../kernel/model-options.ts'
import { InvalidValue, type Parse } from './values.ts'

/** US dollars per million tokens (D1.3 MODEL_PRICES). */
export type ModelPrice = { input: number; output: number; cache_read?: number; cache_write?: number }

export const modelPrices = jsonMap(
  isPrice,
  'a JSON object: model -> {"input", "output", "cache_read"?, "cache_write"?}, all from 0 to 1000000',
)

export const toolPolicies = jsonMap(isPolicy, 'a JSON object: tool -> "allow", "ask", "client" or "deny"')

/** Options of a model, checked like those of a tenant's instance. */
export const modelOptions: Parse<ModelOptions> = (raw) => {
  const value = parseJson(raw)
  const problem = findOptionsProblem(value)
  if (!problem) return Object.freeze(value as ModelOptions)
  const where = problem.pointer === '' ? 'a JSON object of options' : `${problem.pointer} to be ${problem.expected}`
  return new InvalidValue(where)
}

/** Parses a JSON object into a map. A map has no prototype: a model that is called `constructor` is not found by accident. */
function jsonMap<T>(isValid: (value: unknown) => value is T, wanted: string): Parse<ReadonlyMap<string, T>> {
  return (raw) => {
    const object = parseJson(raw)
    if (!isJsonObject(object)) return new InvalidValue(wanted)
    const values = new Map<string, T>()
    for (const [name, value] of Object.entries(object)) {
      if (!isValid(value)) return new InvalidValue(`${wanted}, which the entry ${JSON.stringify(name)} is not`)
      values.set(name, value)
    }
    return values
  }
}

const PRICE_NAMES = ['input', 'output', 'cache_read', 'cache_write']

function isPrice(value: unknown): value is ModelPrice {
  if (!isJsonObject(value) || !('input' in value) || !('output' in value)) return false
  return Object.entries(value).every(([name, dollars]) => PRICE_NAMES.includes(name) && isAmount(dollars))
}

/** The same limit as for a tenant's own prices. It keeps sums of costs finite. */
const MAX_PRICE = 1_000_000
const isAmount = (value: unknown) => typeof value === 'number' && value >= 0 && value <= MAX_PRICE

function isPolicy(value: unknown): value is 'allow' | 'ask' | 'client' | 'deny' {
  return value === 'allow' || value === 'ask' || value === 'client' || value === 'deny'
}
