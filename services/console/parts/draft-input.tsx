import { useSignal } from '@preact/signals'
import type { TargetedEvent } from 'preact'

type DraftInputProps = {
  label: string
  value: string
  class: string
  placeholder?: string
  isSearch?: boolean
  /** Called with the trimmed text when the person has changed it and leaves the field or presses Enter. */
  onCommit(text: string): void
}

/**
 * An input whose text is used only when it is finished, because half a name is not a name. Until then the typed text
 * stays, even if the page is drawn again.
 */
export function DraftInput({ label, value, isSearch = false, onCommit, ...look }: DraftInputProps) {
  const typed = useSignal<string | undefined>(undefined)
  const common = {
    ...look,
    'aria-label': label,
    spellcheck: false,
    value: typed.value ?? value,
    onInput: ({ currentTarget }: TargetedEvent<HTMLInputElement>) => void (typed.value = currentTarget.value),
    onChange: ({ currentTarget }: TargetedEvent<HTMLInputElement>) => {
      typed.value = undefined
      onCommit(currentTarget.value.trim())
    },
    onBlur: () => void (typed.value = undefined),
  }
  return isSearch ? <input type="search" {...common} /> : <input type="text" {...common} />
}
