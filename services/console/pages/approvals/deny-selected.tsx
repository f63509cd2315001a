import { type Signal, useSignal } from '@preact/signals'
import { type Ask, asks } from '../../api/pending.ts'
import { counted } from '../../base/format.ts'
import { denyAll } from '../../parts/ask/reply.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { FormButtons } from '../../parts/form-buttons.tsx'
import { ReasonField } from '../../parts/reason-field.tsx'

/** Denies the selected requests together. Allowing is done one by one. */
export function DenySelected({ selected }: { selected: Signal<ReadonlySet<string>> }) {
  const isOpen = useSignal(false)
  const chosen = asks().value.filter(({ id }) => selected.value.has(id))
  if (chosen.length === 0) return null
  const deny = async (reason: string) => {
    isOpen.value = false
    await denyAll(chosen, reason)
    selected.value = new Set()
  }
  return (
    <>
      <button type="button" class="button danger" onClick={() => (isOpen.value = true)}>
        Deny {counted(chosen.length, 'request')} …
      </button>
      {isOpen.value && <DenyDialog chosen={chosen} onDeny={deny} onClose={() => (isOpen.value = false)} />}
    </>
  )
}

type DenyDialogProps = { chosen: readonly Ask[]; onDeny(reason: string): Promise<void>; onClose(): void }

function DenyDialog({ chosen, onDeny, onClose }: DenyDialogProps) {
  const reason = useSignal('')
  const what = counted(chosen.length, 'request')
  const submit = (event: Event) => {
    event.preventDefault()
    void onDeny(reason.value.trim())
  }
  return (
    <Dialog label={`Deny ${what}`} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <h2>Deny {what}</h2>
        <p class="soft">{chosen.map(({ tool_name }) => tool_name).join(', ')}</p>
        <ReasonField reason={reason} />
        <FormButtons submit={`Deny ${what}`} look="danger" onBack={onClose} />
      </form>
    </Dialog>
  )
}
