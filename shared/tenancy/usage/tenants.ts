import type { TenantLoad, TenantRange } from '../../cluster/commands/tenant-loads.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { LimitsView } from '../limits/limit-settings.ts'
import type { UsageStore, UsageSums } from './port.ts'
import { dayOf } from './sums.ts'

/** A tenant's figures for operators: its present load, its usage today (UTC), and its daily budget. */
export type TenantView = TenantLoad & {
  runs_today: number
  failed_today: number
  tokens_today: number
  usd_today: number
  tokens_per_day: number | null
  usd_per_day: number | null
}

/** `next` is the last name, if more tenants follow. `isIncomplete`: some processes have not answered. */
export type TenantsPage = { tenants: TenantView[]; next: string | null; isIncomplete: boolean }

export type TenantsDeps = {
  loads(range: TenantRange): Promise<{ tenants: readonly TenantLoad[]; isIncomplete: boolean }>
  /** `undefined` without a store: then only tenants with live runs or sessions are known. */
  usage: Pick<UsageStore, 'read' | 'tenants'> | undefined
  /** `undefined`: tenants have no limits. */
  limits: { get(tenant: TenantId): Promise<LimitsView> } | undefined
  now?: () => Date
}

/** Tenants whose figures are read at the same time. */
const AT_ONCE = 10

/** Lists the tenants that have live runs or sessions, or whose runs have ended today, by name. */
export async function listTenants(deps: TenantsDeps, { after, limit }: TenantRange): Promise<TenantsPage> {
  const day = dayOf((deps.now?.() ?? new Date()).toISOString())
  const range = { after, limit: limit + 1 }
  const [{ tenants: loads, isIncomplete }, used] = await Promise.all([
    deps.loads(range),
    deps.usage?.tenants(day, range) ?? [],
  ])
  const known = new Map(loads.map((load) => [load.tenant, load]))
  const names = [...new Set([...known.keys(), ...used])].sort((one, other) => (one < other ? -1 : 1))
  const shown = names.slice(0, limit)
  const tenants: TenantView[] = []
  for (let i = 0; i < shown.length; i += AT_ONCE) {
    const some = shown.slice(i, i + AT_ONCE).map((tenant) => viewOf(deps, { day, load: known.get(tenant), tenant }))
    tenants.push(...(await Promise.all(some)))
  }
  return { tenants, next: names.length > limit ? (shown.at(-1) ?? null) : null, isIncomplete }
}

type Subject = { tenant: TenantId; load: TenantLoad | undefined; day: string }

async function viewOf({ usage, limits }: TenantsDeps, { tenant, load, day }: Subject): Promise<TenantView> {
  const range = { by: 'kind', bucket: 'day', from: day, until: day, limit: 1 } as const
  const [places, view] = await Promise.all([usage?.read(tenant, range), limits?.get(tenant)])
  const kinds = [...(places?.[0]?.rows.values() ?? [])]
  const sum = (of: (sums: UsageSums) => number) => kinds.reduce((all, each) => all + of(each), 0)
  const ended = {
    tokens: sum((each) => each.input_tokens + each.output_tokens),
    cost_usd: sum((each) => each.cost_usd),
  }
  const { tokens, cost_usd } = view?.used ?? ended // The budget counts each model call, also of runs that have not ended.
  return {
    ...(load ?? { tenant, live_runs: 0, waiting_runs: 0, sessions: 0 }),
    runs_today: sum(({ runs }) => runs),
    failed_today: sum(({ failed }) => failed),
    tokens_today: tokens,
    usd_today: cost_usd,
    tokens_per_day: view?.tokens_per_day ?? null,
    usd_per_day: view?.usd_per_day ?? null,
  }
}
