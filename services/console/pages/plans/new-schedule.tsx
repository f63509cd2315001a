import { useSignal } from '@preact/signals'
import { send } from '../../api/engine.ts'
import { tell } from '../../base/announce.ts'
import { FoldedForm } from '../../parts/folded-form.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { TextArea } from '../../parts/text-area.tsx'
import { TextField } from '../../parts/text-field.tsx'
import { firstPlan } from './first-plan.ts'

/** Makes a schedule, or replaces the one of the same name. */
export const NewSchedule = ({ onSaved }: { onSaved(): void }) => (
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
