import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { may } from '../../api/caller.ts'
import { get, send } from '../../api/engine.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { clock, runClock } from '../../base/clock.ts'
import { absolute, counted, duration, relative, shortId, zone } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { DeleteButton } from '../../parts/delete-button.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago } from '../../parts/time.tsx'

type ScheduleRowProps = { schedule: Schedule; onChange(): void }

/** A schedule: its next times, the result of its last plan, and its skipped ticks. */
export const ScheduleRow = ({ schedule, onChange }: ScheduleRowProps) => (
  <tr>
    <td class="whole name">
      <strong>{schedule.name}</strong>
      <span class="small soft">
        <code>{whenOf(schedule)}</code>
      </span>
      <span class="small soft lines">{schedule.plan.title || counted(schedule.plan.steps.length, 'step')}</span>
    </td>
    <td class="whole">
      {schedule.paused ? (
        <StateBadge state="paused" />
      ) : (
        <NextTimes ticks={schedule.next_ticks} timeZone={schedule.timezone ?? zone()} />
      )}
    </td>
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

const whenOf = ({ cron, every_secs }: Schedule) => cron ?? `every ${duration((every_secs ?? 0) * 1000)}`

/** The next times in the schedule's time zone; each also shows the reader's local time. Times that have passed since they were read are left out. */
function NextTimes({ ticks, timeZone }: { ticks: readonly string[]; timeZone: string }) {
  useEffect(runClock, [])
  const [next, ...others] = ticks.filter((tick) => Date.parse(tick) > clock().value)
  if (next === undefined) return <>–</>
  return (
    <div class="next-times">
      <time dateTime={next} title={`${absolute(next)}, your time`}>
        <strong class="number">{momentIn(timeZone, next)}</strong>{' '}
        <span class="soft">{relative(next, clock().value)}</span>
      </time>
      {others.length > 0 && (
        <ol class="small soft" aria-label="Then">
          {others.map((tick, i) => (
            <li key={tick}>
              <time class="number" dateTime={tick} title={`${absolute(tick)}, your time`}>
                {momentIn(timeZone, tick, others[i - 1] ?? next)}
              </time>
            </li>
          ))}
        </ol>
      )}
      <span class="small soft">{timeZone}</span>
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

function Actions({ schedule: { name, paused, last_plan: last }, onChange }: ScheduleRowProps) {
  const isBusy = useSignal(false)
  const act = async (change: () => Promise<unknown>, said: string) => {
    isBusy.value = true
    await change().then(() => tell(said), tellFailure)
    isBusy.value = false
    onChange()
  }
  const run = () => act(() => send('POST', `${schedulePath(name)}/run`), `The plan of ${name} is submitted`)
  const toggle = () =>
    act(() => setPaused(name, !paused), paused ? `The schedule ${name} goes on` : `The schedule ${name} is paused`)
  const word = paused ? 'Resume' : 'Pause'
  const isAtWork = last !== null && last.ended_at === null
  return (
    <div class="row end">
      <button
        type="button"
        class="button"
        disabled={isBusy.value || isAtWork}
        title={isAtWork ? 'Its last plan has not ended' : undefined}
        aria-label={`Run now: the schedule ${name}`}
        onClick={() => void run()}
      >
        Run now
      </button>
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

/** `Thu, Nov 26, 03:00` in a time zone, without the day if it is that of `before`; with seconds if they are not 0. */
function momentIn(timeZone: string, at: string, before?: string): string {
  const show = (options: Intl.DateTimeFormatOptions, of: string) =>
    new Intl.DateTimeFormat(undefined, { timeZone, ...options }).format(new Date(of))
  const [day, dayBefore] = [at, before].map(
    (each) => each && show({ weekday: 'short', day: 'numeric', month: 'short' }, each),
  )
  const second = new Date(at).getUTCSeconds() === 0 ? {} : ({ second: '2-digit' } as const)
  const time = show({ hour: '2-digit', minute: '2-digit', ...second }, at)
  return day === dayBefore ? time : `${day}, ${time}`
}

const schedulePath = (name: string): string => `/plans/schedules/${encodeURIComponent(name)}`

/** Pauses or resumes a schedule. Everything else stays as it is at the server, even if this page has read an older state. */
async function setPaused(name: string, paused: boolean): Promise<void> {
  const { cron, timezone, every_secs, plan } = await get<Schedule>(schedulePath(name))
  const timing = cron === undefined ? { every_secs } : { cron, timezone }
  await send('PUT', schedulePath(name), { ...timing, plan, paused })
}
