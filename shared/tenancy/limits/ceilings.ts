import { isJsonObject, parseJson } from '../../kernel/json.ts'
import { parseTenant, type TenantId } from '../../kernel/tenant.ts'
import { type Limits, NO_LIMITS } from '../tenant-config/config.ts'

/**
 * The operator's upper bounds of tenants' limits (TENANT_LIMITS); `null` for no ceiling. `weightOf`: a tenant's share
 * relative to other tenants; 1 is an equal share.
 */
export type Ceilings = { of(tenant: TenantId): Limits; weightOf(tenant: TenantId): number }

export const NO_CEILINGS: Ceilings = { of: () => NO_LIMITS, weightOf: () => 1 }

/** The limits that apply: the tenant's own up to its ceiling, and the ceiling if it has none. */
export function effectiveLimits<T extends Limits>(own: T, ceiling: Limits): T {
  if (ceiling === NO_LIMITS) return own
  return { ...own, ...eachLimit((name) => least(own[name], ceiling[name])) }
}

/** The fields in which `own` exceeds the ceiling. A missing limit does not exceed it, because the ceiling then applies. */
export const excesses = (own: Limits, ceiling: Limits): (keyof Limits)[] =>
  NAMES.filter((name) => own[name] !== null && own[name] !== least(own[name], ceiling[name]))

/** The entry under this name is for every tenant; a tenant's own entry replaces its fields, also by `null`. */
const EVERY_TENANT = '*'

/**
 * Reads `{"*": {"tokens_per_day": 5000000}, "<tenant>": {…}}` with the fields of `PUT /config/limits`, and `weight`. Returns its problems as texts
 * that follow the name of the file.
 */
export function parseCeilings(text: string): Ceilings | { problems: string[] } {
  const root = parseJson(text)
  if (!isJsonObject(root)) return { problems: ['must be a JSON object: {"*": {…}, "<tenant>": {…}}'] }
  const problems = Object.entries(root).flatMap(([tenant, entry]) => problemsOf(tenant, entry))
  if (problems.length > 0) return { problems: problems.slice(0, MAX_PROBLEMS) }
  const entries = new Map(Object.entries(root as Record<string, Partial<Entry>>))
  const common = { ...NO_LIMITS, weight: null, ...entries.get(EVERY_TENANT) }
  const merged = new Map([...entries].map(([tenant, entry]) => [tenant, { ...common, ...entry }]))
  const ceilings = new Map([...merged].map(([tenant, entry]) => [tenant, eachLimit((name) => entry[name])]))
  const ceiling = eachLimit((name) => common[name])
  return {
    of: (tenant) => ceilings.get(tenant) ?? ceiling,
    weightOf: (tenant) => (merged.get(tenant) ?? common).weight ?? 1,
  }
}

type Entry = Limits & { weight: number | null }

const MAX_PROBLEMS = 20

type Rule = { isValid(value: number): boolean; wanted: string }

const whole = (max: number): Rule => ({
  isValid: (value) => Number.isInteger(value) && value >= 1 && value <= max,
  wanted: `a whole number from 1 to ${max}`,
})

/** The same rules as `LimitsRequest` in the API description. */
const RULES: Record<keyof Entry, Rule> = {
  requests_per_minute: whole(1_000_000),
  concurrent_runs: whole(1_000_000),
  concurrent_model_calls: whole(1_000_000),
  tokens_per_day: whole(1_000_000_000_000),
  usd_per_day: {
    isValid: (value) => value > 0 && value <= 1_000_000_000,
    wanted: 'a number above 0 and up to 1000000000',
  },
  weight: { isValid: (value) => value >= 0.1 && value <= 100, wanted: 'a number from 0.1 to 100' },
}

const NAMES = Object.keys(NO_LIMITS) as (keyof Limits)[]

/** All limits of a tenant, each by its name. */
export const eachLimit = (limitOf: (name: keyof Limits) => number | null): Limits => ({
  requests_per_minute: limitOf('requests_per_minute'),
  concurrent_runs: limitOf('concurrent_runs'),
  concurrent_model_calls: limitOf('concurrent_model_calls'),
  tokens_per_day: limitOf('tokens_per_day'),
  usd_per_day: limitOf('usd_per_day'),
})

function least(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other
  return Math.min(one, other)
}

function problemsOf(tenant: string, entry: unknown): string[] {
  const name = JSON.stringify(tenant)
  if (tenant !== EVERY_TENANT && parseTenant(tenant) === undefined)
    return [`names ${name}, which can be no tenant: wanted letters, digits and ._:- or *`]
  if (!isJsonObject(entry)) return [`must hold an object of limits for ${name}`]
  return Object.entries(entry).flatMap(([field, value]) => {
    const rule = Object.hasOwn(RULES, field) ? RULES[field as keyof Entry] : undefined
    if (!rule)
      return [`has the unknown limit ${JSON.stringify(field)} for ${name}: wanted ${Object.keys(RULES).join(', ')}`]
    const isValid = value === null || (typeof value === 'number' && rule.isValid(value))
    return isValid ? [] : [`must hold for ${name} as ${field} ${rule.wanted}, or null for none`]
  })
}
