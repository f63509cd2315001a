import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schema } from '../../../../../shared/client/api.ts'
import { send } from '../../../api/engine.ts'
import { tell } from '../../../base/announce.ts'
import { SelectField } from '../../../parts/field.tsx'
import { SaveForm } from '../../../parts/save-form.tsx'
import { TextField } from '../../../parts/text-field.tsx'
import { inWords } from '../in-words.ts'
import { PriceFields, type PriceRow, pricesIn, rowsOf } from './price-fields.tsx'

type Instance = Schema<'Instance'>
export type Kind = Schema<'ProviderList'>['providers'][number]

export const KIND_NAMES: Readonly<Record<string, string>> = {
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  google: 'Google Gemini',
  'openai-compatible': 'A server with the API of OpenAI',
  ollama: 'Ollama',
  demo: 'The built-in demo',
}

const LIMITS = [
  ['requests_per_minute', 'Requests a minute'],
  ['tokens_per_minute', 'Tokens a minute'],
  ['concurrent', 'Calls at a time'],
] as const

const LABELS: Readonly<Record<string, string>> = {
  type: 'Provider',
  key: 'Key',
  url: 'Address',
  prices: 'Prices',
  ...Object.fromEntries(LIMITS),
}

type InstanceFormProps = {
  kinds: readonly Kind[]
  /** The instance to change. If it is left out, a new one is added. */
  instance?: Instance
  /** Names that a new one may not have. */
  taken?: readonly string[]
  /** It is stored, whether or not its models were found. */
  onStored(): void
  onDone(): void
}

/** Adds a provider or changes one, and lists its models, which shows at once whether the key is valid. */
export function InstanceForm({ kinds, instance, taken = [], onStored, onDone }: InstanceFormProps) {
  const fields = useFields(instance, kinds)
  const stored = useSignal(instance?.name)
  const kind = kinds.find(({ type }) => type === fields.type.value)
  const free = freeName(fields.type.value, taken)
  const save = async () => {
    const wanted = stored.value ?? (fields.name.value.trim() || free)
    if (stored.value === undefined && taken.includes(wanted)) throw new Error(isTaken(wanted))
    await send('PUT', instancePath(wanted), bodyOf(fields, instance))
    stored.value = wanted
    await send('POST', `${instancePath(wanted)}/discover`).finally(onStored)
    tell(`${wanted} is connected`)
    onDone()
  }
  const cancel = (
    <button type="button" class="button plain" onClick={onDone}>
      Cancel
    </button>
  )
  return (
    <SaveForm
      submit={instance ? 'Save the provider' : 'Connect and find its models'}
      onSave={save}
      say={inWords(LABELS)}
      more={(instance || taken.length > 0) && cancel}
    >
      <MainFields fields={fields} kinds={kinds} kind={kind} instance={instance} />
      <MoreFields fields={fields} kind={kind} freeName={instance ? undefined : free} />
    </SaveForm>
  )
}

export const instancePath = (name: string): string => `/config/instances/${encodeURIComponent(name)}`

const isTaken = (name: string) =>
  `There is a provider ${name} already: edit it on its card, or give this one another name.`

/** The name of the kind, with a number where it is taken. */
function freeName(type: string, taken: readonly string[]): string {
  let name = type
  for (let number = 2; taken.includes(name); number++) name = `${type}-${number}`
  return name
}

type Fields = ReturnType<typeof useFields>

/** The typed values, which begin with those of the changed instance. */
function useFields(instance: Instance | undefined, kinds: readonly Kind[]) {
  const type = useSignal<string>(instance?.type ?? 'openai')
  useEffect(() => {
    if (kinds.length > 0 && !kinds.some((kind) => kind.type === type.value)) type.value = kinds[0]?.type ?? ''
  }, [kinds])
  return {
    type,
    name: useSignal(''),
    key: useSignal(''),
    url: useSignal(instance?.url ?? ''),
    prices: useSignal<readonly PriceRow[]>(rowsOf(instance?.prices)),
    limits: LIMITS.map(([field, label]) => ({
      field,
      label,
      text: useSignal(String(instance?.limits?.[field] ?? '')),
    })),
  }
}

function bodyOf({ type, key, url, prices, limits }: Fields, instance: Instance | undefined): object {
  if (type.value === 'demo') return { type: 'demo' }
  const given = limits.flatMap(({ field, text }) => (text.value === '' ? [] : [[field, Number(text.value)]]))
  return {
    type: type.value,
    ...(url.value.trim() !== '' && { url: url.value.trim() }),
    ...(key.value !== '' && { key: key.value }),
    prices: pricesIn(prices.value, instance?.prices),
    limits: given.length > 0 ? Object.fromEntries(given) : null,
  }
}

type PartProps = { fields: Fields; kind: Kind | undefined }

type MainFieldsProps = PartProps & { kinds: readonly Kind[]; instance: Instance | undefined }

/** The provider and its key, which nearly everybody needs. */
const MainFields = ({ fields, kinds, kind, instance }: MainFieldsProps) => (
  <div class="form-grid">
    {!instance && (
      <SelectField
        label="Provider"
        value={fields.type}
        choices={kinds.map(({ type }) => type)}
        nameOf={(type) => KIND_NAMES[type] ?? type}
      />
    )}
    {kind?.type !== 'demo' && (
      <TextField
        label="Key"
        value={fields.key}
        isSecret
        placeholder={instance?.key ?? (kind?.requires_key === false ? 'none' : '')}
        hint={instance ? 'Empty keeps the one that is set.' : 'Kept encrypted, and never shown again.'}
      />
    )}
    {kind?.requires_url && <AddressField value={fields.url} kind={kind} />}
  </div>
)

const AddressField = ({ value, kind }: { value: Signal<string>; kind: Kind | undefined }) => (
  <TextField
    label="Address"
    value={value}
    placeholder={kind?.default_url ?? 'https://models.example.com/v1'}
    hint={
      kind?.requires_url
        ? 'The base of its API, as its documentation prints it.'
        : 'Empty for the address of the provider itself.'
    }
  />
)

/** `freeName`: the name for a new instance if the person enters none. */
const MoreFields = ({ fields, kind, freeName: free }: PartProps & { freeName: string | undefined }) => (
  <details>
    <summary class="soft">{free === undefined ? 'Prices and limits' : 'Name, prices and limits'}</summary>
    <div class="stack more-fields">
      <div class="form-grid">
        {free !== undefined && (
          <TextField label="Name" value={fields.name} placeholder={free} hint="The routing and programs name it so." />
        )}
        {kind?.type !== 'demo' && !kind?.requires_url && <AddressField value={fields.url} kind={kind} />}
        {kind?.type !== 'demo' &&
          fields.limits.map(({ field, label, text }) => (
            <TextField key={field} label={label} value={text} placeholder="no limit" />
          ))}
      </div>
      {kind?.type !== 'demo' && <PriceFields rows={fields.prices} />}
    </div>
  </details>
)
