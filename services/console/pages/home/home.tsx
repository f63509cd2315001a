import type { Schema, TenantEvent } from '../../../../shared/client/api.ts'
import { caller } from '../../api/caller.ts'
import { useList } from '../../api/list.ts'
import { asks } from '../../api/pending.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Columns } from './columns.tsx'
import { failuresOf, troublesOf } from './failures.ts'
import { FirstVisit } from './first-visit.tsx'
import { TroubleBanner } from './trouble.tsx'
import './home.css'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { serverNow } from '../../base/clock.ts'
import { money, short } from '../../base/format.ts'
import { Figure, Figures } from '../../parts/figures.tsx'

type Run = Schema<'Run'>

/** The figures of the day, problems of providers, and three lists: entries that wait for a person, running work, and recently ended work. */
export function Home() {
  const concerns = ({ event }: { event: string }) =>
    event.startsWith('run.') || event === 'plan.queued' || event === 'plan.ended'
  const list = useList<Run>({ path: '/runs', field: 'runs', query: { limit: 50 }, concerns })
  return (
    <div class="page home">
      <PageHead title="Home" purpose="What needs you, what is at work, and what has ended.">
        <CopyAs method="GET" path="/runs" query={{ limit: '50' }} />
      </PageHead>
      <Loaded from={list}>
        {({ items, next }) => (
          <>
            {next === undefined && <FirstVisit runs={items} />}
            {items.length > 0 && <Budget />}
            {items.length + asks().value.length > 0 && <Lists runs={items} isPart={next !== undefined} />}
          </>
        )}
      </Loaded>
    </div>
  )
}

/** Failed runs that are read. */
const MOST_FAILED = 200

function Lists({ runs, isPart }: { runs: readonly Run[]; isPart: boolean }) {
  const query = { status: 'failed', since: startOfDay(), limit: MOST_FAILED }
  const concerns = ({ event, data }: TenantEvent) => event === 'run.ended' && data['status'] === 'failed'
  const list = useList<Run>({ path: '/runs', field: 'runs', query, concerns })
  const known = runs.filter(({ status, started_at: at }) => status === 'failed' && at >= query.since)
  const failed = list.state.value.data?.items ?? known
  const done = runs.filter(({ status }) => status === 'done')
  return (
    <>
      {troublesOf(failed, serverNow()).map((trouble) => (
        <TroubleBanner key={trouble.model} trouble={trouble} />
      ))}
      <Columns runs={runs} failures={failuresOf(failed, done)} isPart={isPart} />
    </>
  )
}

/** For the present day in UTC, as budgets count it. */
const startOfDay = (): string => `${new Date(serverNow()).toISOString().slice(0, 10)}T00:00:00.000Z`

/** The tenant's usage of today (UTC) and of each of its hours, beside its budget if it has one. */
function Budget() {
  const from = startOfDay()
  const load = () => get<Schema<'UsageResponse'>>('/usage', { bucket: 'hour', by: 'kind', from, limit: 200 })
  const usage = useResource(from, load, ({ event }) => event === 'run.ended').state.value.data
  if (!usage) return null
  const figure = (...fields: readonly UsageField[]) => {
    const sum = (rows: typeof usage.rows) =>
      rows.reduce((total, row) => fields.reduce((of, field) => of + row[field], total), 0)
    const inHour = (hour: number) => usage.rows.filter(({ bucket }) => new Date(bucket).getUTCHours() === hour)
    return { used: sum(usage.rows), trend: Array.from({ length: 24 }, (_, hour) => sum(inHour(hour))) }
  }
  const limits = caller().value?.limits
  return (
    <Figures>
      <Figure name="Spent today" {...figure('cost_usd')} of={limits?.['usd_per_day']} show={money} />
      <Figure
        name="Tokens today"
        {...figure('input_tokens', 'output_tokens')}
        of={limits?.['tokens_per_day']}
        show={short}
      />
      <Figure name="Runs today" {...figure('runs')} show={short} />
      <Figure name="Failed today" {...figure('failed')} show={short} />
    </Figures>
  )
}

type UsageField = 'runs' | 'failed' | 'input_tokens' | 'output_tokens' | 'cost_usd'
