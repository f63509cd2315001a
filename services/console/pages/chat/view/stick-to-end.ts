import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'

/** If the reader has scrolled up by more than this, the page stays there. */
const NEAR_PX = 80

/** Keeps the end of a growing list visible while the reader has not scrolled up. */
export function useStickToEnd(list: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = list.current
    const content = element?.firstElementChild
    if (!element || !content) return
    let isAtEnd = true
    const toEnd = () => {
      if (isAtEnd) element.scrollTop = element.scrollHeight
    }
    const onScroll = () => {
      isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX
    }
    const observer = new ResizeObserver(toEnd)
    observer.observe(content)
    observer.observe(element)
    element.addEventListener('scroll', onScroll, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', onScroll)
    }
  }, [])
}
