import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { may } from '../../api/caller.ts'
import { send } from '../../api/engine.ts'
import { useList } from '../../api/list.ts'
import { tell } from '../../base/announce.ts'
import { serverNow } from '../../base/clock.ts'
import { FoldedForm, OpenForm } from '../../parts/folded-form.tsx'
import { Loaded } from '../../parts/loading.tsx'
import { More } from '../../parts/more.tsx'
import { Empty } from '../../parts/notice.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { TextArea } from '../../parts/text-area.tsx'
import { TextField } from '../../parts/text-field.tsx'
import { firstPlan } from './first-plan.ts'
import { type Schedule, ScheduleRow } from './schedule-row.tsx'

/** Plans that the clock submits. */
export function Schedules() {
  const list = useList<Schedule>({
    path: '/plans/schedules',
    field: 'schedules',
    concerns: ({ event }) => event === 'plan.queued' || event === 'plan.ended',
  })
  const { items = [] } = list.state.value.data ?? {}
  useEffect(() => atTime(firstPast(items), list.reload), [items])
  return (
    <>
      <Loaded from={list}>
        {(data) =>
          data.items.length === 0 ? (
            <Empty
              title="No schedule yet"
              how={[
                'Say when: a cron pattern in a time zone, such as 0 3 * * * for each night at three.',
                'Write the plan that is submitted then, as one writes any plan.',
                'Try it with Run now, and see here what became of the last one.',
              ]}
              action={may('run') && <OpenForm name="new-schedule">Make the first schedule</OpenForm>}
            >
              A schedule submits a plan by the clock, when the one before it has ended.
            </Empty>
          ) : (
            <ScheduleTable schedules={data.items} onChange={list.reload} />
          )
        }
      </Loaded>
      <More list={list} />
      {may('run') && <NewSchedule onSaved={list.reload} />}
    </>
  )
}

type ScheduleTableProps = { schedules: readonly Schedule[]; onChange(): void }

const ScheduleTable = ({ schedules, onChange }: ScheduleTableProps) => (
  <div class="card table-wrap">
    <table class="table cards schedules">
      <thead>
        <tr>
          <th>Schedule</th>
          <th>Next times</th>
          <th>Last result</th>
          <th>Skipped</th>
          <th>
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {schedules.map((schedule) => (
          <ScheduleRow key={schedule.name} schedule={schedule} onChange={onChange} />
        ))}
      </tbody>
    </table>
  </div>
)

/** The time when all shown times of some schedule have passed: then the list is read again. A tick that is skipped sends no event. */
const firstPast = (schedules: readonly Schedule[]): number =>
  Math.min(...schedules.flatMap(({ next_ticks }) => next_ticks.slice(-1)).map((at) => Date.parse(at)))

const LONGEST_MS = 86_400_000

function atTime(atMs: number, act: () => void): () => void {
  const timer = setTimeout(act, Math.min(Math.max(1_000, atMs - serverNow() + 500), LONGEST_MS))
  return () => clearTimeout(timer)
}

/** Creates a schedule, or replaces the schedule of the same name. */
const NewSchedule = ({ onSaved }: { onSaved(): void }) => (
  <FoldedForm name="new-schedule" summary="New schedule …">
    <ScheduleForm onSaved={onSaved} />
  </FoldedForm>
)

function ScheduleForm({ onSaved }: { onSaved(): void }) {
  const name = useSignal('nightly')
  const cron = useSignal('0 3 * * *')
  const timezone = useSignal(Intl.DateTimeFormat().resolvedOptions().timeZone)
  const plan = useSignal(JSON.stringify(firstPlan(), null, 2))
  const save = async () => {
    const body = { cron: cron.value, timezone: timezone.value, plan: JSON.parse(plan.value) as unknown }
    await send('PUT', `/plans/schedules/${encodeURIComponent(name.value)}`, body)
    tell(`The schedule ${name.value} is set`)
    onSaved()
  }
  return (
    <SaveForm submit="Set the schedule" onSave={save}>
      <div class="form-grid">
        <TextField label="Name" value={name} />
        <TextField label="Cron" value={cron} hint="Minute, hour, day of the month, month, day of the week" isCode />
        <TextField label="Time zone" value={timezone} />
      </div>
      <TextArea label="Plan" value={plan} rows={10} />
    </SaveForm>
  )
}
