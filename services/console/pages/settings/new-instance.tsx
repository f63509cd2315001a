import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { get, send } from '../../api/engine.ts'
import { useResource } from '../../api/resource.ts'
import { tell } from '../../base/announce.ts'
import { FoldedForm } from '../../parts/folded-form.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { SelectField } from '../../parts/select-field.tsx'
import { TextArea } from '../../parts/text-area.tsx'
import { TextField } from '../../parts/text-field.tsx'

/** Adds a provider, or replaces the one of the same name. */
export const NewInstance = ({ onSaved }: { onSaved(): void }) => (
  <FoldedForm name="new-instance" summary="Add a provider …">
    <InstanceForm onSaved={onSaved} />
  </FoldedForm>
)

function InstanceForm({ onSaved }: { onSaved(): void }) {
  const kinds =
    useResource('/config/providers', () => get<Schema<'ProviderList'>>('/config/providers')).state.value.data
      ?.providers ?? []
  const [name, type, url, key] = [useSignal('main'), useSignal('openai'), useSignal(''), useSignal('')]
  const prices = useSignal('')
  const kind = kinds.find((each) => each.type === type.value)
  const save = async () => {
    const body = {
      type: type.value,
      ...(url.value !== '' && { url: url.value }),
      ...(key.value !== '' && { key: key.value }),
      ...(type.value !== 'demo' && pricesIn(prices.value)),
    }
    await send('PUT', `/config/instances/${encodeURIComponent(name.value)}`, body)
    key.value = ''
    tell(`The provider ${name.value} is set`)
    onSaved()
  }
  return (
    <SaveForm submit="Save the provider" onSave={save}>
      <div class="form-grid">
        <TextField label="Name" value={name} />
        <SelectField label="Kind" value={type} choices={kinds.map((each) => each.type)} />
        {type.value !== 'demo' && (
          <TextField label="Address" value={url} placeholder={kind?.default_url ?? 'https://models.example.com/v1'} />
        )}
        {type.value !== 'demo' && (
          <TextField
            label="Key"
            value={key}
            isSecret
            hint="Kept encrypted, and never shown again. Empty keeps the one that is set for the same kind and address."
          />
        )}
      </div>
      {type.value !== 'demo' && <TextArea label="Prices" value={prices} rows={3} hint={PRICES_HINT} />}
    </SaveForm>
  )
}

const PRICES_HINT =
  'US dollars per million tokens by model, as JSON: {"model-1": {"input": 1, "output": 2}}. Empty keeps those that are set, null deletes them.'

/** Throws for what is no JSON. Whether it is prices, the server checks. */
function pricesIn(text: string): { prices?: unknown } {
  if (text.trim() === '') return {}
  try {
    return { prices: JSON.parse(text) as unknown }
  } catch {
    throw new Error('The prices are no JSON: look for a comma, a quote or a bracket.')
  }
}
