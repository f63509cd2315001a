import type { Schema } from '../../../../../shared/client/api.ts'
import { counted, duration, money, percent } from '../../../base/format.ts'
import { StateBadge } from '../../../parts/state-badge.tsx'
import { Ago } from '../../../parts/time.tsx'
import { type ListedFlow, placeOf } from '../flow.ts'

export const FlowTable = ({ flows }: { flows: readonly ListedFlow[] }) => (
  <div class="card table-wrap">
    <table class="table cards">
      <thead>
        <tr>
          <th>Flow</th>
          <th>State</th>
          <th class="right">Runs in 24 h</th>
          <th>By hour</th>
          <th class="right">Pass rate</th>
          <th class="right">p50</th>
          <th class="right">p95</th>
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

const Row = ({ flow: { name, built_in: isBuiltIn, updated_at: at, figures, ...flow } }: { flow: ListedFlow }) => (
  <tr>
    <td class="whole">
      <a class="lines" href={placeOf(name)}>
        {name}
      </a>
    </td>
    <td>
      <span class="row tight">
        {flow.served_version !== null && <StateBadge state="published" word={`Published v${flow.served_version}`} />}
        {flow.state === 'draft' && <StateBadge state="draft" word={`Draft v${flow.version}`} />}
      </span>
    </td>
    {figures && <Numbers figures={figures} />}
    <td>{isBuiltIn ? <span class="soft">built in</span> : <Ago at={at} />}</td>
  </tr>
)

/** The last 24 hours of a flow. */
const Numbers = ({ figures: { runs, failed, invalid, ...figures } }: { figures: Schema<'FlowFigures'> }) => (
  <>
    <td class={runs === 0 ? 'right number soft none' : 'right number'}>
      {runs}
      <span class="unit"> {runs === 1 ? 'run' : 'runs'}</span>
    </td>
    <td class={runs === 0 ? 'none' : undefined}>
      <Sparkline hours={figures.runs_by_hour} />
    </td>
    <Figure of={runs === 0 ? null : 1 - (failed + invalid) / runs} show={percent} unit="passed" />
    <Figure of={figures.p50_ms} show={duration} />
    <Figure of={figures.p95_ms} show={duration} unit="p95" />
    <Figure of={runs === 0 ? null : figures.cost_usd / runs} show={money} unit="per run" />
  </>
)

const Figure = ({ of, show, unit }: { of: number | null; show(value: number): string; unit?: string }) => (
  <td class={of === null ? 'right number soft none' : 'right number'}>
    {of === null ? '–' : show(of)}
    {unit && <span class="unit"> {unit}</span>}
  </td>
)

const BAR = { width: 3, gap: 1, height: 20 } as const

/** The runs of each hour as small bars, the newest at the right. */
function Sparkline({ hours }: { hours: readonly number[] }) {
  const most = Math.max(1, ...hours)
  const width = hours.length * (BAR.width + BAR.gap) - BAR.gap
  const total = hours.reduce((sum, runs) => sum + runs, 0)
  return (
    <svg
      class="hours"
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
