import { ofTab } from './tab.ts'

/** Input events with which a reader moves on the page. After one of them the page is no longer scrolled to its earlier position. */
const OWN_MOVES = ['wheel', 'touchstart', 'mousedown', 'keydown'] as const

/** It waits for the page to be long enough. */
const waiting = ofTab((): { observer?: MutationObserver | undefined } => ({}))

const scrolled = (): Element | null => document.querySelector('#page')

/** Keeps the scroll position of each entry in the browser's history. The browser does this itself only if the window scrolls. */
export function watchScroll(): void {
  document.addEventListener('scrollend', ({ target }) => target === scrolled() && keepScroll(), { capture: true })
  // A scroll that has just ended has not been told yet. What is kept at `pagehide` may come too late for a reload.
  for (const leaving of ['beforeunload', 'pagehide']) addEventListener(leaving, keepScroll)
  for (const move of OWN_MOVES) document.addEventListener(move, stop, { capture: true, passive: true })
  restoreScroll()
}

export function keepScroll(): void {
  if (waiting().observer) return // It is not yet where it shall be.
  history.replaceState({ ...history.state, top: scrolled()?.scrollTop ?? 0 }, '')
}

export function scrollToTop(): void {
  stop()
  scrolled()?.scrollTo(0, 0)
}

/** Scrolls to the entry's position as soon as the page is long enough. */
export function restoreScroll(): void {
  stop()
  const { top } = (history.state ?? {}) as { top?: number }
  if (top === undefined) return
  const scroll = () => {
    const page = scrolled()
    if (!page || page.scrollHeight - page.clientHeight < top) return
    stop()
    page.scrollTop = top
  }
  const observer = new MutationObserver(scroll)
  waiting().observer = observer
  observer.observe(document.body, { childList: true, subtree: true })
  requestAnimationFrame(() => waiting().observer && scroll()) // The page may be long enough already, and not change again.
}

function stop(): void {
  waiting().observer?.disconnect()
  waiting().observer = undefined
}
