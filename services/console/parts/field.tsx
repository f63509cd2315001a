import type { Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

type FieldProps = {
  label: string
  hint?: string | undefined
  problem?: string | undefined
  /** Renders the control with the id that the label names. */
  children: (id: string) => ComponentChildren
}

export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label class="label" for={id}>
        {label}
      </label>
      {children(id)}
      {hint !== undefined && <span class="hint">{hint}</span>}
      {problem !== undefined && <span class="problem">{problem}</span>}
    </div>
  )
}

type SelectFieldProps = {
  label: string
  value: Signal<string>
  choices: readonly string[]
  hint?: string
  /** The label of a choice, if it differs from the value. */
  nameOf?(choice: string): string
}

export const SelectField = ({ label, value, choices, hint, nameOf = (choice) => choice }: SelectFieldProps) => (
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
            {nameOf(choice)}
          </option>
        ))}
      </select>
    )}
  </Field>
)
