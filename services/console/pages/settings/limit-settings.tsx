import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { get, send } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { tell } from '../../base/announce.ts'
import { money, short } from '../../base/format.ts'
import { Loaded } from '../../parts/loading.tsx'
import { Notice } from '../../parts/notice.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { TextField } from '../../parts/text-field.tsx'
import { inWords } from './in-words.ts'

type Limits = Schema<'Limits'>

/** The tenant's own limits, below the operator's. */
export function LimitSettings() {
  const concerns = ({ event }: { event: string }) =>
    event === 'config.changed' || event === 'run.ended' || event === 'budget.threshold'
  const limits = useResource('/config/limits', () => get<Limits>('/config/limits'), concerns)
  return (
    <Loaded from={limits}>
      {(data) => (
        <>
          <p class="soft">
            Used today: {short(data.used.tokens)} tokens, {money(data.used.cost_usd)}.
          </p>
          {data.warnings?.map((warning) => (
            <Notice key={warning} tone="warn">
              {warning}
            </Notice>
          ))}
          <LimitForm key={JSON.stringify(FIELDS.map(([name]) => data[name]))} limits={data} onSaved={limits.reload} />
        </>
      )}
    </Loaded>
  )
}

const FIELDS = [
  ['requests_per_minute', 'Requests a minute'],
  ['concurrent_runs', 'Runs at a time'],
  ['concurrent_model_calls', 'Model calls at a time'],
  ['tokens_per_day', 'Tokens a day'],
  ['usd_per_day', 'Dollars a day'],
] as const

function LimitForm({ limits, onSaved }: { limits: Limits; onSaved(): void }) {
  const fields = FIELDS.map(([name, label]) => ({ name, label, text: useSignal(String(limits[name] ?? '')) }))
  const save = async () => {
    const body = fields.map(({ name, text }) => [name, text.value === '' ? null : Number(text.value)] as const)
    const { customers } = limits // They have no fields here, and stay as they are.
    await send('PUT', '/config/limits', { ...Object.fromEntries(body), customers })
    tell('The limits are saved')
    onSaved()
  }
  return (
    <div class="card">
      <SaveForm submit="Save the limits" onSave={save} say={inWords(Object.fromEntries(FIELDS))}>
        <div class="form-grid">
          {fields.map(({ name, label, text }) => (
            <TextField
              key={name}
              label={label}
              value={text}
              placeholder="no limit"
              hint={ceilingOf(limits.ceiling[name])}
            />
          ))}
        </div>
      </SaveForm>
    </div>
  )
}

const ceilingOf = (ceiling: number | null | undefined) =>
  ceiling === null || ceiling === undefined ? 'No ceiling of the operator' : `At most ${ceiling}`
