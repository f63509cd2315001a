import type { Schema } from '../../../../shared/client/api.ts'
import { caller } from '../../api/caller.ts'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { serverNow } from '../../base/clock.ts'
import { money, short } from '../../base/format.ts'
import { Figure, Figures } from '../../parts/figures.tsx'

/** The tenant's usage of today (UTC), beside its budget where it has one. */
export function Budget() {
  const from = `${new Date(serverNow()).toISOString().slice(0, 10)}T00:00:00.000Z`
  const load = () => get<Schema<'UsageResponse'>>('/usage', { bucket: 'day', by: 'kind', from })
  const usage = useResource(from, load, ({ event }) => event === 'run.ended').state.value.data
  if (!usage) return null
  const sum = (field: 'runs' | 'failed' | 'input_tokens' | 'output_tokens' | 'cost_usd') =>
    usage.rows.reduce((total, row) => total + row[field], 0)
  const limits = caller().value?.limits
  return (
    <Figures>
      <Figure name="Spent today" used={sum('cost_usd')} of={limits?.['usd_per_day']} show={money} />
      <Figure
        name="Tokens today"
        used={sum('input_tokens') + sum('output_tokens')}
        of={limits?.['tokens_per_day']}
        show={short}
      />
      <Figure name="Runs today" used={sum('runs')} show={short} />
      <Figure name="Failed" used={sum('failed')} show={short} />
    </Figures>
  )
}
