import type { InstanceLimits } from '../../agent/providers/port.ts'
import type { Strategy } from '../../agent/providers/strategy.ts'
import type { JsonObject } from '../../kernel/events.ts'
import type { ModelOptions } from '../../kernel/model-options.ts'
import type { ProviderType } from '../../kernel/provider-types.ts'
import type { ModelPrice } from '../../platform/config/json-values.ts'
import type { Sealed } from '../secrets/seal.ts'

/** The purposes that a route can serve (D8.1). */
const ROLES = ['main', 'subagent', 'plan', 'compact', 'transcription'] as const
export type Role = (typeof ROLES)[number]

/** Which instance and model serve a role; the fallback has both or neither (api.md "Role route"). `strategy` and `hedge`: D56. */
export type RoleRoute = {
  instance: string
  model: string
  fallback_instance?: string
  fallback_model?: string
  strategy?: Strategy
  hedge?: boolean
}

export type Routing = Partial<Record<Role, RoleRoute>>

/** Whether dispatch records keep payloads, and how long they are kept. */
export type Audit = { store_payloads: boolean; retention_days: number }

/** For how many days files are kept (D43.3). */
export type FileRules = { retention_days: number }

/** The types of D8.2, and in the standalone form `demo`, which calls no provider. */
export type InstanceType = ProviderType

/** US dollars per million tokens of each model. */
export type InstancePrices = Readonly<Record<string, ModelPrice>>

/** A named key. `key` is the masked form; the key itself is in `sealed` alone. */
export type StoredSecret = { name: string; key: string; sealed: Sealed; updated_at: string }

/** The sealed part of an instance: its own key, and the values of extra headers, which may be keys too. */
export type InstanceMaterial = { key?: string; headers?: Record<string, string> }

/** A provider of the tenant. Its key is its own (`sealed`), a named secret's, or none. */
export type StoredInstance = {
  name: string
  type: InstanceType
  /** Absent: the provider's own address. */
  url?: string
  /** Name of the secret that holds the key. */
  secret?: string
  /** The instance's own key, masked. */
  key?: string
  /** Header values are masked here and whole in `sealed`. */
  options?: ModelOptions
  /** By model: they replace MODEL_PRICES and the catalogue. */
  prices?: InstancePrices
  /** The limits for each of its models. */
  limits?: InstanceLimits
  /** `InstanceMaterial` as JSON; absent when there is none. */
  sealed?: Sealed
  /** Changes with each PUT: results of discovery and probes belong to one revision. */
  revision: string
  created_at: string
  updated_at: string
}

/** The events that a webhook can ask for (D10.2). */
export type WebhookEventType =
  | 'run.ended'
  | 'permission.requested'
  | 'tool_call.requested'
  | 'plan.ended'
  | 'flow.ended'
  | 'batch.ended'
  | 'budget.threshold'

/** A receiver of the tenant's events. Its secret is in `sealed` alone and never shown. */
export type StoredWebhook = {
  /** Another webhook of the same name, after this one was deleted, has another id. */
  id: string
  name: string
  url: string
  events: readonly WebhookEventType[]
  enabled: boolean
  /** `WebhookMaterial` as JSON. */
  sealed: Sealed
  created_at: string
  updated_at: string
}

/** The sealed part of a webhook. The secret before the last change signs too until `until` (ISO 8601). */
export type WebhookMaterial = { secret: string; previous?: { secret: string; until: string } }

/** The limits of a tenant; `null` for none. A day is a day of UTC. */
export type Limits = {
  requests_per_minute: number | null
  concurrent_runs: number | null
  concurrent_model_calls: number | null
  tokens_per_day: number | null
  usd_per_day: number | null
}

/** The limits of one customer of a tenant; a limit that is left out or `null` does not apply. A month is a month of UTC. */
export type CustomerLimits = {
  concurrent_runs?: number | null
  tokens_per_day?: number | null
  usd_per_day?: number | null
  usd_per_month?: number | null
  /** Its share of the turns relative to others; 1 is an equal share. */
  weight?: number | null
}

/** The limits of a tenant, and of its customers: those of all customers, and those of single ones, which replace them. */
export type TenantLimits = Limits & {
  customers?: { default?: CustomerLimits; overrides?: Record<string, CustomerLimits> } | undefined
}

export const limitsOfCustomer = ({ customers }: TenantLimits, customer: string): CustomerLimits | undefined =>
  customers && { ...customers.default, ...new Map(Object.entries(customers.overrides ?? {})).get(customer) }

/** The share of a customer relative to the tenant's other customers; by default 1. */
export const weightOfCustomer = (limits: TenantLimits | undefined, customer: string): number =>
  (limits && limitsOfCustomer(limits, customer)?.weight) ?? 1

export const NO_LIMITS: Limits = {
  requests_per_minute: null,
  concurrent_runs: null,
  concurrent_model_calls: null,
  tokens_per_day: null,
  usd_per_day: null,
}

/** Everything that one tenant has configured: one document, so that each change is one compare-and-set. */
export type TenantConfig = {
  readonly routing: Routing
  readonly audit: Audit
  readonly files: FileRules
  readonly instances: readonly StoredInstance[]
  readonly secrets: readonly StoredSecret[]
  readonly webhooks: readonly StoredWebhook[]
  readonly limits: TenantLimits
}

export const EMPTY_CONFIG: TenantConfig = {
  routing: {},
  audit: { store_payloads: true, retention_days: 30 },
  files: { retention_days: 30 },
  instances: [],
  secrets: [],
  webhooks: [],
  limits: NO_LIMITS,
}

/** The configuration in a stored document, which may be older than some of the fields. */
export const toConfig = (doc: JsonObject | undefined): TenantConfig => ({
  ...EMPTY_CONFIG,
  ...(doc as Partial<TenantConfig> | undefined),
  limits: { ...NO_LIMITS, ...(doc as Partial<TenantConfig> | undefined)?.limits },
})

/** The visible part of a key: 4 characters at most, never more than a quarter (D8.1). */
export const maskKey = (key: string): string => `${key.slice(0, Math.min(4, Math.floor(key.length / 4)))}…`
