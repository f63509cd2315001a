import { useSignal } from '@preact/signals'
import type { TargetedEvent } from 'preact'

type DraftInputProps = {
  label: string
  value: string
  class: string
  placeholder?: string
  isSearch?: boolean
  /** Called with the trimmed text when one has changed it and leaves the field or presses Enter. */
  onCommit(text: string): void
}

/** An input whose text counts when it is finished: half a name is none. Until then it stays as typed, whatever is drawn again meanwhile. */
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
