import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

type MenuProps = {
  label: ComponentChildren
  /** Keeps it open for further choices. */
  staysOpen?: boolean
  children: ComponentChildren
}

/** A button with choices below it. Escape, a click elsewhere and a choice close the menu. */
export function Menu({ label, staysOpen = false, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null)
  const close = (takesFocus = false) => {
    if (!menu.current?.open) return
    menu.current.open = false
    if (takesFocus) menu.current.querySelector('summary')?.focus()
  }
  useEffect(() => {
    // Uses the event's path, because the clicked element may have left the page since, for example an entry that deletes itself.
    const onClick = (event: Event) => {
      if (menu.current && !event.composedPath().includes(menu.current)) close()
    }
    document.addEventListener('click', onClick)
    return () => document.removeEventListener('click', onClick)
  }, [])
  return (
    <details class="menu" ref={menu} onKeyDown={({ key }) => key === 'Escape' && close(true)}>
      <summary class="button">{label}</summary>
      <div
        onClick={({ target }) => {
          if (!staysOpen && target instanceof Element && target.closest('button, a')) close()
        }}
      >
        {children}
      </div>
    </details>
  )
}
