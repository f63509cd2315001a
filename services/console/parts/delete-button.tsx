import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { send } from '../api/engine.ts'
import { tell } from '../base/announce.ts'
import { Confirm } from './confirm.tsx'

type DeleteButtonProps = {
  /** Names the thing in the texts, such as `the schedule nightly`. */
  what: string
  label?: string
  path: string
  onDeleted(): void
  /** Says which things are deleted with it, and which stay. */
  children: ComponentChildren
}

/** Deletes something of the API, after it has asked. */
export function DeleteButton({ what, label = 'Delete …', path, onDeleted, children }: DeleteButtonProps) {
  const isAsked = useSignal(false)
  const close = () => (isAsked.value = false)
  const remove = async () => {
    await send('DELETE', path)
    tell(`${what.charAt(0).toUpperCase()}${what.slice(1)} is deleted`)
    close()
    onDeleted()
  }
  return (
    <>
      <button
        type="button"
        class="button danger"
        aria-label={`Delete ${what} …`}
        onClick={() => (isAsked.value = true)}
      >
        {label}
      </button>
      {isAsked.value && (
        <Confirm title={`Delete ${what}?`} submit="Delete" isDangerous onConfirm={remove} onClose={close}>
          {children}
        </Confirm>
      )}
    </>
  )
}
