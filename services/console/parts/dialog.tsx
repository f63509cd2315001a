import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

type DialogProps = { label: string; isWide?: boolean; onClose(): void; children: ComponentChildren }

/** A window above the page. Escape and a click beside it close it; the focus goes back to where it was. */
export function Dialog({ label, isWide = false, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={isWide ? 'dialog wide' : 'dialog'}
      aria-label={label}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      {children}
    </dialog>
  )
}
