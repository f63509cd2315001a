import type { Schema, TenantEvent } from '../../../../shared/client/api.ts'
import { caller, has, may } from '../../api/caller.ts'
import { useList } from '../../api/list.ts'
import { asks } from '../../api/pending.ts'
import { hrefOf } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Columns } from './columns.tsx'
import { failuresOf, troublesOf } from './failures.ts'
import { TroubleBanner } from './trouble.tsx'
import './home.css'
import { get } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { serverNow } from '../../base/clock.ts'
import { money, short } from '../../base/format.ts'
import { Figure, Figures } from '../../parts/figures.tsx'

type Run = Schema<'Run'>

/** The figures of the day, what the providers break, and three lists: what needs the person, work that goes on, and work that has ended lately. */
export function Home() {
  const concerns = ({ event }: { event: string }) =>
    event.startsWith('run.') || event === 'plan.queued' || event === 'plan.ended'
  const list = useList<Run>({ path: '/runs', field: 'runs', query: { limit: 50 }, concerns })
  return (
    <div class="page home">
      <div class="row">
        <Budget />
        <span class="grow" />
        <CopyAs method="GET" path="/runs" query={{ limit: '50' }} />
      </div>
      <Loaded from={list}>
        {({ items, next }) =>
          items.length === 0 && asks().value.length === 0 ? (
            <FirstVisit />
          ) : (
            <Lists runs={items} isPart={next !== undefined} />
          )
        }
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

/** Of the day in UTC, which budgets count. */
const startOfDay = (): string => `${new Date(serverNow()).toISOString().slice(0, 10)}T00:00:00.000Z`

/** A server on which nothing has run: the one next step is a chat. */
function FirstVisit() {
  const model = caller().value?.model
  return (
    <div class="card first-visit">
      <Empty
        title="See an agent at work"
        action={
          may('run') && (
            <a class="button main" href={hrefOf('/chat', { try: 'permission' })}>
              Start the first chat
            </a>
          )
        }
      >
        {model === 'demo'
          ? 'No model is configured, so the built-in demo answers. It calls a tool, asks for your permission, and is done in a minute.'
          : 'Ask the agent for something: it calls tools, and asks for your permission before it changes anything.'}
      </Empty>
      <ul class="checks">
        <Check isDone={model !== null && model !== undefined}>
          {model ? `The model ${model} answers` : 'No model is configured'}
        </Check>
        <Check isDone={has('config')}>
          {has('config')
            ? 'Providers, limits and webhooks can be configured'
            : 'Configuration is off: it needs a store and a master key'}
        </Check>
        <Check isDone={has('plans')}>
          {has('plans') ? 'Plans run in the background' : 'Plans are off: they need a store'}
        </Check>
      </ul>
    </div>
  )
}

const Check = ({ isDone, children }: { isDone: boolean; children: string }) => (
  <li class="small">
    <b class={isDone ? 'yes' : 'no'} aria-label={isDone ? 'ready' : 'missing'}>
      {isDone ? '✓' : '–'}
    </b>{' '}
    {children}
  </li>
)

/** The tenant's usage of today (UTC) and of each of its hours, beside its budget where it has one. */
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
