import { type Signal, useSignal } from '@preact/signals'
import { send } from '../../api/engine.ts'
import { tell } from '../../base/announce.ts'
import { FoldedForm } from '../../parts/folded-form.tsx'
import { Notice } from '../../parts/notice.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { TextField } from '../../parts/text-field.tsx'
import { inWords } from './in-words.ts'

const EVENTS = [
  ...['permission.requested', 'tool_call.requested', 'run.ended', 'plan.ended', 'flow.ended', 'batch.ended'],
  'budget.threshold',
] as const

export const NewWebhook = ({ onSaved }: { onSaved(): void }) => (
  <FoldedForm name="new-webhook" summary="Add a webhook …">
    <WebhookForm onSaved={onSaved} />
  </FoldedForm>
)

function WebhookForm({ onSaved }: { onSaved(): void }) {
  const [name, url] = [useSignal('approvals'), useSignal('')]
  const events = useSignal<ReadonlySet<string>>(new Set(['permission.requested']))
  const secret = useSignal<string | undefined>(undefined)
  const save = async () => {
    const fresh = newSecret()
    const body = { url: url.value, events: [...events.value], secret: fresh }
    await send('PUT', `/config/webhooks/${encodeURIComponent(name.value)}`, body)
    secret.value = fresh
    tell(`The webhook ${name.value} is set`)
    onSaved()
  }
  return (
    <SaveForm
      submit="Save the webhook"
      onSave={save}
      isOff={events.value.size === 0}
      say={inWords({ url: 'Address', name: 'Name' })}
    >
      <div class="form-grid">
        <TextField label="Name" value={name} />
        <TextField label="Address" value={url} placeholder="https://example.com/hooks" />
      </div>
      <EventBoxes events={events} />
      {secret.value !== undefined && (
        <Notice>
          The receiver checks signatures with this secret, which is shown only now: <code>{secret.value}</code>
        </Notice>
      )}
    </SaveForm>
  )
}

function EventBoxes({ events }: { events: Signal<ReadonlySet<string>> }) {
  const toggle = (event: string) => {
    const next = new Set(events.value)
    if (!next.delete(event)) next.add(event)
    events.value = next
  }
  return (
    <fieldset class="row">
      <legend class="visually-hidden">Events</legend>
      {EVENTS.map((event) => (
        <label key={event} class="row">
          <input type="checkbox" checked={events.value.has(event)} onChange={() => toggle(event)} />
          {event}
        </label>
      ))}
    </fieldset>
  )
}

const newSecret = () => `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`
