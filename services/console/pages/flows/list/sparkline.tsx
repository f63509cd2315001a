import { counted } from '../../../base/format.ts'

const BAR = { width: 3, gap: 1, height: 20 } as const

/** The runs of each hour as small bars, the newest at the right. */
export function Sparkline({ hours }: { hours: readonly number[] }) {
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
