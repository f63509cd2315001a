import type { Signal } from '@preact/signals'
import { Field } from './field.tsx'

type TextAreaProps = { label: string; value: Signal<string>; hint?: string; rows?: number }

export const TextArea = ({ label, value, hint, rows = 8 }: TextAreaProps) => (
  <Field label={label} hint={hint}>
    {(id) => (
      <textarea
        id={id}
        class="input mono"
        rows={rows}
        spellcheck={false}
        value={value.value}
        onInput={({ currentTarget }) => (value.value = currentTarget.value)}
      />
    )}
  </Field>
)
