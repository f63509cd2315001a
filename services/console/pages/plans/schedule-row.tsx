import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { may } from '../../api/caller.ts'
import { get, send } from '../../api/engine.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { clock, runClock } from '../../base/clock.ts'
import { counted, duration, moment, relative, shortId } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { DeleteButton } from '../../parts/delete-button.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago } from '../../parts/time.tsx'

type ScheduleRowProps = { schedule: Schedule; onChange(): void }

/** A schedule: when it applies next, what became of its last plan, and which ticks it has left out. */
export const ScheduleRow = ({ schedule, onChange }: ScheduleRowProps) => (
  <tr>
    <td class="whole name">
      <strong>{schedule.name}</strong>
      <span class="small soft">
        <code>{whenOf(schedule)}</code>
      </span>
      <span class="small soft lines">{schedule.plan.title || counted(schedule.plan.steps.length, 'step')}</span>
    </td>
    <td class="whole">{schedule.paused ? <StateBadge state="paused" /> : <NextTimes ticks={schedule.next_ticks} />}</td>
    <td class="whole">
      <LastResult schedule={schedule} />
    </td>
    <td class={schedule.last_skip ? 'whole' : 'none'}>
      {schedule.last_skip ? (
        <Skipped count={schedule.skipped_ticks} last={schedule.last_skip} />
      ) : (
        <span class="soft">–</span>
      )}
    </td>
    <td class="whole">{may('run') && <Actions schedule={schedule} onChange={onChange} />}</td>
  </tr>
)

const whenOf = ({ cron, timezone, every_secs }: Schedule) =>
  cron === undefined ? `every ${duration((every_secs ?? 0) * 1000)}` : `${cron} ${timezone ?? 'UTC'}`

/** Those that have passed since they were read are left out. */
function NextTimes({ ticks }: { ticks: readonly string[] }) {
  useEffect(runClock, [])
  const [next, ...others] = ticks.filter((tick) => Date.parse(tick) > clock().value)
  if (next === undefined) return <>–</>
  return (
    <div class="next-times">
      <time dateTime={next}>
        <strong class="number">{moment(next)}</strong> <span class="soft">{relative(next, clock().value)}</span>
      </time>
      {others.length > 0 && (
        <ol class="small soft" aria-label="Then">
          {others.map((tick, i) => (
            <li key={tick}>
              <time class="number" dateTime={tick}>
                {moment(tick, others[i - 1] ?? next)}
              </time>
            </li>
          ))}
        </ol>
      )}
    </div>
  )
}

function LastResult({ schedule: { last_plan_id: id, last_plan: plan } }: { schedule: Schedule }) {
  if (id === null) return <span class="soft number">No plan yet</span>
  if (!plan) return <span class="soft">{shortId(id)}, not kept any more</span>
  return (
    <>
      <a class="row tight" href={hrefOf(`/plans/${id}`)} aria-label={`The last plan, ${plan.status}`}>
        <StateBadge state={plan.status} />
        <Ago at={plan.ended_at ?? plan.created_at} />
      </a>
      {plan.error !== undefined && <span class="small soft lines">{plan.error}</span>}
    </>
  )
}

const REASONS = {
  plan_not_ended: 'the plan before had not ended',
  rate_limit: 'no request was left in the minute',
  plan_limit: 'too many plans were waiting',
} as const

const Skipped = ({ count, last }: { count: number; last: NonNullable<Schedule['last_skip']> }) => (
  <>
    <span class="number">{count}</span>
    <span class="small soft">
      , last <Ago at={last.at} />: {REASONS[last.reason]}
    </span>
  </>
)

function Actions({ schedule: { name, paused }, onChange }: ScheduleRowProps) {
  const isBusy = useSignal(false)
  const toggle = async () => {
    isBusy.value = true
    const said = paused ? `The schedule ${name} goes on` : `The schedule ${name} is paused`
    await setPaused(name, !paused).then(() => tell(said), tellFailure)
    isBusy.value = false
    onChange()
  }
  const word = paused ? 'Resume' : 'Pause'
  return (
    <div class="row end">
      <button
        type="button"
        class="button"
        disabled={isBusy.value}
        aria-label={`${word} the schedule ${name}`}
        onClick={() => void toggle()}
      >
        {word}
      </button>
      <DeleteButton what={`the schedule ${name}`} path={schedulePath(name)} onDeleted={onChange}>
        It submits no plan any more. The plans that it has submitted stay.
      </DeleteButton>
    </div>
  )
}

export type Schedule = Schema<'PlanSchedule'>

const schedulePath = (name: string): string => `/plans/schedules/${encodeURIComponent(name)}`

/** Pauses a schedule or lets it go on, and leaves all else of it as it is now, whatever this page has read before. */
async function setPaused(name: string, paused: boolean): Promise<void> {
  const { cron, timezone, every_secs, plan } = await get<Schedule>(schedulePath(name))
  const timing = cron === undefined ? { every_secs } : { cron, timezone }
  await send('PUT', schedulePath(name), { ...timing, plan, paused })
}
