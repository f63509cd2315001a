import type { Schema } from '../../../../../shared/client/api.ts'
import { has } from '../../../api/caller.ts'
import { get } from '../../../api/engine.ts'
import { useResource } from '../../../api/resource.ts'
import { serverNow } from '../../../base/clock.ts'
import { counted, duration, money, percent } from '../../../base/format.ts'
import { StateBadge } from '../../../parts/state-badge.tsx'
import { Ago } from '../../../parts/time.tsx'
import { type FlowHead, isAbout, placeOf } from '../flow.ts'
import { addUp, type FlowStats } from './flow-stats.ts'

export const FlowTable = ({ flows }: { flows: readonly FlowHead[] }) => (
  <div class="card table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>Flow</th>
          <th>Served</th>
          <th>Draft</th>
          <th class="right">Runs in 24 h</th>
          <th>By hour</th>
          <th class="right">Pass rate</th>
          <th class="right">p50</th>
          <th class="right">Cost per run</th>
          <th>Changed</th>
        </tr>
      </thead>
      <tbody>
        {flows.map((flow) => (
          <Row key={flow.name} flow={flow} />
        ))}
      </tbody>
    </table>
  </div>
)

function Row({ flow }: { flow: FlowHead }) {
  const { name, version, state, served_version: served, built_in: isBuiltIn, updated_at: at } = flow
  return (
    <tr>
      <td class="whole">
        <a class="lines" href={placeOf(name)}>
          {name}
        </a>
      </td>
      <td>{served === null ? <span class="soft">none</span> : <StateBadge state="published" word={`v${served}`} />}</td>
      <td class={state === 'draft' ? undefined : 'none'}>
        {state === 'draft' ? <StateBadge state="draft" word={`Draft v${version}`} /> : <None />}
      </td>
      <Numbers name={name} />
      <td>{isBuiltIn ? <span class="soft">built in</span> : <Ago at={at} />}</td>
    </tr>
  )
}

/** The last 24 hours of a flow. Where no history is kept there are none. */
function Numbers({ name }: { name: string }) {
  const stats = useResource(name, () => readStats(name), isAbout(name, 'flow.ended')).state.value.data
  if (!stats || stats.runs === 0)
    return (
      <>
        <td class="right number soft none">{stats ? 0 : '–'}</td>
        <td class="none">{stats && <Sparkline hours={stats.hours} />}</td>
        <td class="right none">
          <None />
        </td>
        <td class="right none">
          <None />
        </td>
        <td class="right none">
          <None />
        </td>
      </>
    )
  return (
    <>
      <td class="right number">
        {stats.runs}
        {stats.isPartial && '+'}
        <span class="unit"> {stats.runs === 1 ? 'run' : 'runs'}</span>
      </td>
      <td>
        <Sparkline hours={stats.hours} />
      </td>
      <td class="right number">{stats.passRate === undefined ? <None /> : <PassRate rate={stats.passRate} />}</td>
      <td class="right number" title="The median of the hours' medians">
        {stats.p50Ms === undefined ? <None /> : duration(stats.p50Ms)}
      </td>
      <td class="right number">{money(stats.costPerRun ?? 0)}</td>
    </>
  )
}

const None = () => <span class="soft">–</span>

const PassRate = ({ rate }: { rate: number }) => (
  <span>
    {percent(rate)}
    <span class="unit"> passed</span>
  </span>
)

async function readStats(flow: string): Promise<FlowStats | undefined> {
  if (!has('dispatches')) return undefined
  const { buckets } = await get<Schema<'DispatchStats'>>('/dispatches/stats', { flow, bucket: 'hour', limit: 50 })
  return addUp(buckets, serverNow())
}

const BAR = { width: 3, gap: 1, height: 20 } as const

/** The runs of each hour as small bars, the newest at the right. */
function Sparkline({ hours }: { hours: readonly number[] }) {
  const most = Math.max(1, ...hours)
  const width = hours.length * (BAR.width + BAR.gap) - BAR.gap
  const total = hours.reduce((sum, runs) => sum + runs, 0)
  return (
    <svg
      class="sparkline"
      width={width}
      height={BAR.height}
      viewBox={`0 0 ${width} ${BAR.height}`}
      role="img"
      aria-label={`${counted(total, 'run')} in ${hours.length} hours, at most ${most} in one`}
    >
      {hours.map((runs, i) => {
        const height = runs === 0 ? 1 : Math.max(3, (runs / most) * BAR.height)
        return (
          <rect
            key={i}
            class={runs === 0 ? 'none' : undefined}
            x={i * (BAR.width + BAR.gap)}
            y={BAR.height - height}
            width={BAR.width}
            height={height}
          />
        )
      })}
    </svg>
  )
}
