import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { Notice } from '../notice.tsx'

/** A reader is at the end of a box that has less than this below. */
const NEAR_PX = 8

/** Whether the end of the box's content is on the screen. */
export const showsEnd = ({ scrollHeight, scrollTop, clientHeight }: HTMLElement): boolean =>
  clientHeight > 0 && scrollHeight - scrollTop - clientHeight < NEAR_PX

/** The hint beside an allow button while the call was not shown completely. */
export const NotSeen = () => <p class="problem small">You have not seen all of it: its end is not shown yet.</p>

type WholeProps = {
  /** Becomes true when the end of the box has been on the screen. */
  isSeen: Signal<boolean>
  children: ComponentChildren
}

/** A box for the call that a person decides about. If it does not show the whole call, it says so at its top. */
export function Whole({ isSeen, children }: WholeProps) {
  const isOpen = useSignal(false)
  const isCut = useSignal(false)
  const { box, foot, look } = useEnd(isSeen)
  useLayoutEffect(() => {
    isCut.value = box.current !== null && !showsEnd(box.current)
  }, [isOpen.value])
  return (
    <>
      {!isSeen.value && isCut.value && (
        <Notice tone="warn">
          <div class="row">
            <span class="grow">This is not all of it: read to the end of the box before you allow it.</span>
            <button type="button" class="button" onClick={() => (isOpen.value = true)}>
              Show all
            </button>
          </div>
        </Notice>
      )}
      <div>
        <div
          ref={box}
          class={isOpen.value ? 'whole open' : 'whole'}
          tabIndex={0}
          role="region"
          aria-label="What it does"
          onScroll={look}
        >
          {children}
        </div>
        <i ref={foot} class="foot-of-whole" />
      </div>
    </>
  )
}

/** The end of the content counts as seen when the box is scrolled to it, and the area below the box is on the screen. */
function useEnd(isSeen: Signal<boolean>) {
  const box = useRef<HTMLDivElement>(null)
  const foot = useRef<HTMLElement>(null)
  const isOnScreen = useRef(false)
  const look = () => {
    if (box.current && isOnScreen.current && showsEnd(box.current)) isSeen.value = true
  }
  useEffect(() => {
    const observer = new IntersectionObserver((changes) => {
      isOnScreen.current = changes.at(-1)?.isIntersecting ?? false
      look()
    })
    if (foot.current) observer.observe(foot.current)
    return () => observer.disconnect()
  }, [])
  return { box, foot, look }
}
