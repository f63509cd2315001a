type Member = {
  id: string
  role: string
  state: string
  load: number
  capacity: number | null
  version: string | null
  since: string | null
  pid: number
  lease_ms: number | null
}

type Tenant = {
  tenant: string
  live_runs: number
  waiting_runs: number
  sessions: number
  runs_today: number
  failed_today: number
  tokens_today: number
  usd_today: number
  tokens_per_day: number | null
  usd_per_day: number | null
}

/** The answer of `/` of the ops listener (services/ops/overview.ts). */
export type Overview = {
  form: 'standalone' | 'cluster'
  members: readonly Member[] | null
  queues: readonly { kind: string; waiting: number; active: number; failed: number; oldest_waiting_ms: number }[] | null
  tenants: { most_spent: readonly Tenant[]; count: number; has_more: boolean; incomplete: boolean } | null
  failures: readonly { code: string; count: number }[]
  faults: Readonly<Record<string, number>>
}
