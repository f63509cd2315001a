import { signal } from '@preact/signals'
import { isChord, isTyping } from '../base/keys.ts'
import { hrefOf, navigate } from '../base/router.ts'
import { ofTab } from '../base/tab.ts'
import { offered } from './pages.tsx'

export const isPaletteOpen = ofTab(() => signal(false))

export const openPalette = (): void => {
  isPaletteOpen().value = true
}

/** `g` waits this long for the letter of a page. */
const SECOND_KEY_MS = 1_200

/** Ctrl-K, `/` and `?` open the palette, `g` with a letter goes to a page, and Escape closes a menu. Keys typed into a field are ignored. */
export function watchKeys(): () => void {
  let isGoing = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const go = (key: string) => {
    isGoing = false
    const page = offered().find((each) => each.key === key)
    if (page) navigate(hrefOf(page.path))
    return page !== undefined
  }
  const onKey = (event: KeyboardEvent) => {
    const { key } = event
    if ((event.ctrlKey || event.metaKey) && key === 'k') {
      event.preventDefault()
      openPalette()
      return
    }
    if (isChord(event) || isTyping(event.target)) return
    if (key === 'Escape') closeMenu()
    if (isGoing && go(key)) event.preventDefault()
    else if (key === '/' || key === '?') {
      event.preventDefault()
      openPalette()
    } else if (key === 'g') {
      isGoing = true
      clearTimeout(timer)
      timer = setTimeout(() => (isGoing = false), SECOND_KEY_MS)
    }
  }
  addEventListener('keydown', onKey)
  return () => {
    clearTimeout(timer)
    removeEventListener('keydown', onKey)
  }
}

/** The focus returns to the element that opened the menu. */
function closeMenu(): void {
  const menu = document.querySelector<HTMLDetailsElement>('.menu[open]')
  if (!menu) return
  menu.open = false
  menu.querySelector('summary')?.focus()
}
