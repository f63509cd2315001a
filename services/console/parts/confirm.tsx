import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { tellFailure } from '../base/announce.ts'
import { Dialog } from './dialog.tsx'
import { FormButtons } from './form-buttons.tsx'

type ConfirmProps = {
  title: string
  submit: string
  isDangerous?: boolean
  /** When it fails the dialog stays open and shows the reason. */
  onConfirm(): Promise<void>
  onClose(): void
  /** The options, after the text. */
  more?: ComponentChildren
  children: ComponentChildren
}

/** Asks for a confirmation before an action that cannot be undone. `children` explain the action. */
export function Confirm({ title, submit, isDangerous = false, onConfirm, onClose, more, children }: ConfirmProps) {
  const isBusy = useSignal(false)
  const confirm = (event: Event) => {
    event.preventDefault()
    isBusy.value = true
    onConfirm().catch((cause: unknown) => {
      tellFailure(cause)
      isBusy.value = false
    })
  }
  return (
    <Dialog label={title} onClose={onClose}>
      <form class="stack" onSubmit={confirm}>
        <h2>{title}</h2>
        <p>{children}</p>
        {more}
        <FormButtons submit={submit} look={isDangerous ? 'danger' : 'main'} isOff={isBusy.value} onBack={onClose} />
      </form>
    </Dialog>
  )
}
