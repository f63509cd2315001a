import { useSignal } from '@preact/signals'
import type { Ask } from '../../api/pending.ts'
import { counted } from '../../base/format.ts'
import { replyAll } from '../../parts/ask/reply.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { FormButtons } from '../../parts/form-buttons.tsx'
import { ReasonField } from '../../parts/reason-field.tsx'

type DenyAllProps = { asks: readonly Ask[]; onDone?(): void }

/** Denies several requests with one reason. */
export function DenyAll({ asks, onDone }: DenyAllProps) {
  const isOpen = useSignal(false)
  if (asks.length === 0) return null
  const deny = async (reason: string) => {
    isOpen.value = false
    await replyAll(asks, { allow: false, reason })
    onDone?.()
  }
  return (
    <>
      <button type="button" class="button danger" onClick={() => (isOpen.value = true)}>
        Deny {counted(asks.length, 'request')} …
      </button>
      {isOpen.value && <DenyDialog asks={asks} onDeny={deny} onClose={() => (isOpen.value = false)} />}
    </>
  )
}

type DenyDialogProps = { asks: readonly Ask[]; onDeny(reason: string): Promise<void>; onClose(): void }

function DenyDialog({ asks, onDeny, onClose }: DenyDialogProps) {
  const reason = useSignal('')
  const what = counted(asks.length, 'request')
  const submit = (event: Event) => {
    event.preventDefault()
    void onDeny(reason.value.trim())
  }
  return (
    <Dialog label={`Deny ${what}`} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <h2>Deny {what}</h2>
        <p class="soft">{asks.map(({ tool_name }) => tool_name).join(', ')}</p>
        <ReasonField reason={reason} />
        <FormButtons submit={`Deny ${what}`} look="danger" onBack={onClose} />
      </form>
    </Dialog>
  )
}
