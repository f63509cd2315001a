import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { Notice } from './notice.tsx'

type SaveFormProps = {
  submit: string
  onSave(): Promise<void>
  isOff?: boolean
  /** Says why the server does not take it, in the words of the form. */
  say?(cause: unknown): string
  /** Further buttons beside the one that saves. */
  more?: ComponentChildren
  children: ComponentChildren
}

/** A form that saves the values of its fields. If the server refuses them, it shows the reason above the button. */
export function SaveForm({ submit, onSave, isOff = false, say = messageOf, more, children }: SaveFormProps) {
  const problem = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  const save = async (event: Event) => {
    event.preventDefault()
    isBusy.value = true
    problem.value = await onSave().then(() => undefined, say)
    isBusy.value = false
  }
  return (
    <form class="padded stack" onSubmit={(event) => void save(event)}>
      {children}
      {problem.value !== undefined && <Notice tone="bad">{problem.value}</Notice>}
      <div class="row">
        <button type="submit" class="button main" disabled={isOff || isBusy.value}>
          {isBusy.value ? 'Working …' : submit}
        </button>
        {more}
      </div>
    </form>
  )
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))
