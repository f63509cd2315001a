import type { Schema } from '../../../../shared/client/api.ts'
import { has } from '../../api/caller.ts'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { serverNow } from '../../base/clock.ts'

export type PlanSummary = Schema<'PlanSummary'>

const DAY_MS = 86_400_000

/** The newest plans: those that go on, and those that have failed within a day and that nobody has repeated since. */
export function useNewestPlans(): { working: readonly PlanSummary[]; failed: readonly PlanSummary[] } {
  const load = async () => (has('plans') ? (await get<Schema<'PlanList'>>('/plans', { limit: 30 })).plans : [])
  const plans = useResource('newest plans', load, ({ event }) => event.startsWith('plan.')).state.value.data ?? []
  const repeated = new Set(plans.map(({ retry_of }) => retry_of))
  const isNew = ({ ended_at }: PlanSummary) => ended_at !== null && serverNow() - Date.parse(ended_at) < DAY_MS
  return {
    working: plans.filter(({ ended_at }) => ended_at === null),
    failed: plans.filter((plan) => plan.status === 'failed' && isNew(plan) && !repeated.has(plan.id)),
  }
}
