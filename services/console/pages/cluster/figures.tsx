import { counted, duration, money, short } from '../../base/format.ts'
import type { Overview } from '../../base/overview.ts'

/** The state in four numbers. */
export const Figures = ({ members, queues, tenants }: Overview) => {
  const all = members ?? []
  const draining = all.filter(({ state }) => state === 'draining').length
  const working = all.filter(({ capacity }) => capacity !== null)
  const sum = (field: 'load' | 'capacity') => working.reduce((total, member) => total + (member[field] ?? 0), 0)
  const waiting = queues?.reduce((total, { waiting: each }) => total + each, 0)
  const oldestMs = Math.max(0, ...(queues ?? []).map(({ oldest_waiting_ms: ms }) => ms))
  const spent = tenants?.most_spent.reduce((total, { usd_today: usd }) => total + usd, 0)
  const failed = tenants?.most_spent.reduce((total, { failed_today: each }) => total + each, 0)
  return (
    <dl class="figures">
      <Figure
        name="Processes"
        value={members ? String(all.length) : '–'}
        more={draining > 0 && `${draining} draining`}
      />
      <Figure name="Live runs" value={members ? short(sum('load')) : '–'} more={`of ${short(sum('capacity'))}`} />
      <Figure
        name="Waiting in queues"
        value={waiting === undefined ? '–' : short(waiting)}
        more={oldestMs > 0 && `the oldest for ${duration(oldestMs)}`}
      />
      <Figure
        name="Spent today (UTC)"
        value={spent === undefined ? '–' : money(spent)}
        more={failed !== undefined && failed > 0 && counted(failed, 'run failed', 'runs failed')}
      />
    </dl>
  )
}

const Figure = ({ name, value, more }: { name: string; value: string; more: string | false }) => (
  <div class="card">
    <dt class="small soft">{name}</dt>
    <dd>
      <strong class="number">{value}</strong> {more && <span class="small soft">{more}</span>}
    </dd>
  </div>
)
