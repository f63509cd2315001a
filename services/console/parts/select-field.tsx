import type { Signal } from '@preact/signals'
import { Field } from './field.tsx'

type SelectFieldProps = { label: string; value: Signal<string>; choices: readonly string[]; hint?: string }

export const SelectField = ({ label, value, choices, hint }: SelectFieldProps) => (
  <Field label={label} hint={hint}>
    {(id) => (
      <select
        id={id}
        class="input"
        value={value.value}
        onChange={({ currentTarget }) => (value.value = currentTarget.value)}
      >
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    )}
  </Field>
)
