import type { Signal } from '@preact/signals'
import { Field } from './field.tsx'

type TextFieldProps = {
  label: string
  value: Signal<string>
  hint?: string
  isSecret?: boolean
  placeholder?: string
  isCode?: boolean
}

export const TextField = ({ label, value, hint, isSecret = false, placeholder, isCode = false }: TextFieldProps) => (
  <Field label={label} hint={hint}>
    {(id) => {
      const common = {
        id,
        class: isCode ? 'input mono' : 'input',
        placeholder,
        autocomplete: 'off',
        spellcheck: false,
        value: value.value,
        onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => void (value.value = currentTarget.value),
      }
      return isSecret ? <input type="password" {...common} /> : <input type="text" {...common} />
    }}
  </Field>
)
