import { useSignal } from '@preact/signals'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { Area } from '../../../parts/text-area.tsx'
import { type Completion, complete, completionAt, type Reference } from './references.ts'

type PromptFieldProps = {
  label: string
  value: string
  references: readonly Reference[]
  hint?: string
  problem?: string | undefined
  onChange(value: string): void
}

/** A field for a prompt. After `{{` it offers references to insert; the arrow keys choose one, and Enter or Tab inserts it. */
export function PromptField({ label, value, references, hint, problem, onChange }: PromptFieldProps) {
  const id = useId()
  const { field, open, at, put, take, onKey } = useCompletion(value, references, onChange)
  const options = open.value?.options ?? []
  return (
    <div class="field prompt-field">
      <label class="label" for={id}>
        {label}
      </label>
      <div class="writing">
        <Area
          id={id}
          field={field}
          class="input mono"
          rows={Math.min(14, Math.max(3, value.split('\n').length + 1))}
          spellcheck={false}
          aria-autocomplete="list"
          aria-haspopup="listbox"
          aria-controls={`${id}-list`}
          aria-activedescendant={options.length > 0 ? `${id}-${at.value}` : undefined}
          aria-invalid={problem !== undefined}
          value={value}
          onInput={({ currentTarget: { value: text, selectionStart } }) => put(text, selectionStart)}
          onKeyDown={onKey}
          onBlur={() => (open.value = undefined)}
        />
        <Options id={id} options={options} chosen={at.value} onTake={take} />
      </div>
      {hint !== undefined && <span class="hint">{hint}</span>}
      {problem !== undefined && <span class="problem">{problem}</span>}
    </div>
  )
}

type OptionsProps = { id: string; options: readonly Reference[]; chosen: number; onTake(reference: Reference): void }

const Options = ({ id, options, chosen, onTake }: OptionsProps) => (
  <ul id={`${id}-list`} class="completions" role="listbox" aria-label="References" hidden={options.length === 0}>
    {options.map((option, i) => (
      <li
        key={option.text}
        id={`${id}-${i}`}
        role="option"
        aria-selected={i === chosen}
        // Before the field loses the focus.
        onPointerDown={(event) => {
          event.preventDefault()
          onTake(option)
        }}
      >
        <code>{option.text}</code> <span class="soft small">{option.hint}</span>
      </li>
    ))}
  </ul>
)

function useCompletion(value: string, references: readonly Reference[], onChange: (value: string) => void) {
  const field = useRef<HTMLTextAreaElement>(null)
  const open = useSignal<Completion | undefined>(undefined)
  const at = useSignal(0)
  const caret = useRef<number | undefined>(undefined)
  useLayoutEffect(() => {
    if (caret.current !== undefined) field.current?.setSelectionRange(caret.current, caret.current)
    caret.current = undefined
  }, [value])
  const put = (text: string, position: number) => {
    caret.current = position
    at.value = 0
    open.value = completionAt(text, position, references)
    onChange(text)
  }
  const take = (reference: Reference) => {
    if (!field.current || !open.value) return
    const done = complete(value, { from: open.value.from, to: field.current.selectionStart }, reference.text)
    open.value = undefined
    caret.current = done.caret
    onChange(done.text)
  }
  const onKey = (event: KeyboardEvent) => {
    const options = open.value?.options
    if (!options) return
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const chosen = options[at.value]
    if (step !== undefined) at.value = (at.value + step + options.length) % options.length
    else if (event.key === 'Escape') open.value = undefined
    else if ((event.key === 'Enter' || event.key === 'Tab') && chosen) take(chosen)
    else return
    event.preventDefault()
  }
  return { field, open, at, put, take, onKey }
}
