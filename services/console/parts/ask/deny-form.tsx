import type { Ask } from '../../api/pending.ts'
import { tellFailure } from '../../base/announce.ts'
import { FormButtons } from '../form-buttons.tsx'
import { ReasonField } from '../reason-field.tsx'
import { reply } from './reply.ts'
import { sendTyped, typedReason } from './typed.ts'

/** Denies with a reason, which the model reads. Its field takes the focus: nothing in here allows. */
export function DenyForm({ ask, onDone }: { ask: Ask; onDone(): void }) {
  const reason = typedReason(ask.id)
  const submit = async (event: Event) => {
    event.preventDefault()
    const why = reason.value.trim()
    const answer = { allow: false, ...(why !== '' && { reason: why }) } as const
    await sendTyped(reason, '', () => reply(ask, answer)).catch(tellFailure)
    onDone()
  }
  return (
    <form
      class="stack close"
      onSubmit={(event) => void submit(event)}
      onKeyDown={({ key }) => key === 'Escape' && onDone()}
    >
      <ReasonField reason={reason} hint="The model reads it and can try another way. It may stay empty." />
      <FormButtons submit={`Deny ${ask.tool_name}`} look="danger" onBack={onDone} />
    </form>
  )
}
