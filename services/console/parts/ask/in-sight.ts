import { signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { ofTab } from '../../base/tab.ts'

/** The requests whose cards are on the screen: they are not shown a second time on the page. */
export const asksInSight = ofTab(() => signal<ReadonlySet<string>>(new Set()))

/** A card counts as out of sight when less than this part of it is shown. */
const PART = 0.25

/** Records whether the card of a request is on the screen. A new card counts as on the screen until the browser reports otherwise. */
export function useSight(id: string, card: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    note(id, true)
    const observer = new IntersectionObserver((seen) => note(id, seen.at(-1)?.isIntersecting ?? false), {
      threshold: PART,
    })
    if (card.current) observer.observe(card.current)
    return () => {
      observer.disconnect()
      note(id, false)
    }
  }, [id])
}

function note(id: string, isSeen: boolean): void {
  const known = asksInSight()
  if (known.peek().has(id) === isSeen) return
  const next = new Set(known.peek())
  if (isSeen) next.add(id)
  else next.delete(id)
  known.value = next
}
