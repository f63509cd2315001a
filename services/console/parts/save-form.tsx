import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { Notice } from './notice.tsx'

type SaveFormProps = { submit: string; onSave(): Promise<void>; isOff?: boolean; children: ComponentChildren }

/** Saves what its fields hold, and says above its button why the server does not take it. */
export function SaveForm({ submit, onSave, isOff = false, children }: SaveFormProps) {
  const problem = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  const save = async (event: Event) => {
    event.preventDefault()
    isBusy.value = true
    problem.value = await onSave().then(
      () => undefined,
      (cause: unknown) => (cause instanceof Error ? cause.message : String(cause)),
    )
    isBusy.value = false
  }
  return (
    <form class="padded stack" onSubmit={(event) => void save(event)}>
      {children}
      {problem.value !== undefined && <Notice tone="bad">{problem.value}</Notice>}
      <div class="row">
        <button type="submit" class="button main" disabled={isOff || isBusy.value}>
          {submit}
        </button>
      </div>
    </form>
  )
}
