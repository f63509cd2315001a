import { Field } from '../../../parts/field.tsx'

type PlainFieldProps = {
  label: string
  value: string
  placeholder?: string
  hint?: string
  problem?: string | undefined
  isCode?: boolean
  onChange(value: string): void
}

/** A field of one line whose value belongs to a larger one. */
export const PlainField = ({ label, value, placeholder, hint, problem, isCode, onChange }: PlainFieldProps) => (
  <Field label={label} hint={hint} problem={problem}>
    {(id) => (
      <input
        id={id}
        class={isCode ? 'input mono' : 'input'}
        type="text"
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        aria-invalid={problem !== undefined}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    )}
  </Field>
)
