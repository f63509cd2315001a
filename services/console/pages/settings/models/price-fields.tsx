import type { Signal } from '@preact/signals'
import type { Schema } from '../../../../../shared/client/api.ts'

type Prices = Schema<'InstancePrices'>

/** The prices of a model as they are typed. */
export type PriceRow = { model: string; input: string; output: string }

export const rowsOf = (prices: Prices = {}): PriceRow[] =>
  Object.entries(prices).map(([model, { input, output }]) => ({ model, input: String(input), output: String(output) }))

/** The prices of the rows that name a model. Prices of cached tokens have no fields here and are kept; `null` if there are no prices. */
export function pricesIn(rows: readonly PriceRow[], before: Prices = {}): Prices | null {
  const named = rows.filter(({ model }) => model.trim() !== '')
  const prices = named.map(({ model, input, output }) => [
    model.trim(),
    { ...before[model.trim()], input: numberIn(input), output: numberIn(output) },
  ])
  return prices.length > 0 ? (Object.fromEntries(prices) as Prices) : null
}

/** A text that is not a number is sent as it is, so that the server can refuse it by name. */
const numberIn = (text: string): number =>
  text.trim() === '' || Number.isNaN(Number(text)) ? (text as never) : Number(text)

const COLUMNS = [
  ['model', 'Model'],
  ['input', 'Input'],
  ['output', 'Output'],
] as const

/** Prices of models that the catalogue does not know, or knows otherwise. */
export function PriceFields({ rows }: { rows: Signal<readonly PriceRow[]> }) {
  const change = (at: number, changes: Partial<PriceRow>) =>
    (rows.value = rows.value.map((row, i) => (i === at ? { ...row, ...changes } : row)))
  return (
    <fieldset class="stack close prices">
      <legend class="label">Own prices, in dollars per million tokens</legend>
      {rows.value.map((row, at) => (
        <div key={at} class="row tight">
          {COLUMNS.map(([field, label]) => (
            <input
              key={field}
              class={`input ${field}`}
              aria-label={`${label}${field === 'model' ? '' : ' price'} ${at + 1}`}
              placeholder={label}
              value={row[field]}
              onInput={({ currentTarget }) => change(at, { [field]: currentTarget.value })}
            />
          ))}
          <button
            type="button"
            class="button plain"
            aria-label={`Remove the price ${at + 1}`}
            onClick={() => (rows.value = rows.value.filter((_, i) => i !== at))}
          >
            Remove
          </button>
        </div>
      ))}
      <button
        type="button"
        class="button add"
        onClick={() => (rows.value = [...rows.value, { model: '', input: '', output: '' }])}
      >
        Add a price
      </button>
    </fieldset>
  )
}
