import type { Schema } from '../../../../shared/client/api.ts'
import { may } from '../../api/caller.ts'
import { send } from '../../api/engine.ts'
import { type List, useList } from '../../api/list.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { counted, duration, shortId } from '../../base/format.ts'
import { hrefOf } from '../../base/router.ts'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'
import { NewSchedule } from './new-schedule.tsx'

type Schedule = Schema<'PlanSchedule'>

/** Plans that the clock submits. */
export function Schedules() {
  const list = useList<Schedule>({
    path: '/plans/schedules',
    field: 'schedules',
    concerns: ({ event }) => event === 'plan.queued',
  })
  return (
    <>
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No schedule yet">
              A schedule submits a plan by the clock, when the one before it has ended.
            </Empty>
          ) : (
            <ScheduleTable list={list} schedules={items} />
          )
        }
      </Loaded>
      <More list={list} />
      {may('run') && <NewSchedule onSaved={list.reload} />}
    </>
  )
}

function ScheduleTable({ list, schedules }: { list: List<Schedule>; schedules: readonly Schedule[] }) {
  const remove = async (name: string) => {
    await send('DELETE', `/plans/schedules/${encodeURIComponent(name)}`).then(
      () => tell(`The schedule ${name} is deleted`),
      tellFailure,
    )
    list.reload()
  }
  return (
    <div class="card table-wrap">
      <table class="table cards">
        <thead>
          <tr>
            <th>Schedule</th>
            <th>When</th>
            <th>Plan</th>
            <th>Last</th>
            <th>Left out</th>
            <th>
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {schedules.map((schedule) => (
            <Row key={schedule.name} schedule={schedule} onRemove={() => void remove(schedule.name)} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

const Row = ({ schedule, onRemove }: { schedule: Schedule; onRemove(): void }) => (
  <tr>
    <td>
      <strong>{schedule.name}</strong>
    </td>
    <td>{whenOf(schedule)}</td>
    <td class="whole">{schedule.plan.title || counted(schedule.plan.steps.length, 'step')}</td>
    <td>
      {schedule.last_plan_id === null ? (
        '–'
      ) : (
        <a href={hrefOf(`/plans/${schedule.last_plan_id}`)}>{shortId(schedule.last_plan_id)}</a>
      )}
    </td>
    <td>
      {schedule.last_skip === null ? (
        '–'
      ) : (
        <>
          {schedule.skipped_ticks}, last <Ago at={schedule.last_skip.at} />:{' '}
          {schedule.last_skip.reason.replaceAll('_', ' ')}
        </>
      )}
    </td>
    <td class="right">
      {may('run') && (
        <button type="button" class="button danger" onClick={onRemove}>
          Delete {schedule.name}
        </button>
      )}
    </td>
  </tr>
)

const whenOf = ({ cron, timezone, every_secs }: Schedule) =>
  cron === undefined ? `every ${duration((every_secs ?? 0) * 1000)}` : `${cron} ${timezone ?? 'UTC'}`
