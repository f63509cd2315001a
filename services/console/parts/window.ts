import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Blocks up to this far above and below the screen are drawn, too. */
const MARGIN_PX = 200

/** A block that is drawn, or the room of some that are not. */
export type Part = { block: number } | { gap: 'above' | 'between' | 'below'; px: number }

/**
 * Decides which blocks of a table are drawn: those near the screen, and those around the row that has the focus, because the reader
 * continues from there with the keyboard. A block keeps the height that was measured when it was drawn; before that it has the mean height
 * of the others.
 */
export function useWindow(table: RefObject<HTMLTableElement | null>, count: number, guessPx: number): Part[] {
  const heights = useRef(new Heights(guessPx)).current
  const [shown, setShown] = useState<readonly number[]>([0])
  const look = () => {
    const next = table.current ? [...near(table.current, heights.ends(count)), ...aroundFocus(table.current)] : []
    setShown((before) => (String(before) === String(next) ? before : next))
  }
  useLayoutEffect(() => {
    if (table.current) heights.learn(table.current)
    look()
  })
  useEffect(() => {
    const onScroll = { capture: true, passive: true }
    document.addEventListener('scroll', look, onScroll)
    addEventListener('resize', look)
    return () => {
      document.removeEventListener('scroll', look, onScroll)
      removeEventListener('resize', look)
    }
  }, [count])
  return partsOf(shown, heights.ends(count))
}

class Heights {
  readonly #guessPx: number
  #widthPx = 0
  #known: number[] = []

  constructor(guessPx: number) {
    this.#guessPx = guessPx
  }

  /** Measures the blocks that are drawn. When the width of the table has changed, the heights of all other blocks have changed too. */
  learn(table: HTMLTableElement): void {
    if (table.clientWidth !== this.#widthPx) this.#known = []
    this.#widthPx = table.clientWidth
    for (const { dataset, offsetHeight } of table.tBodies)
      if (dataset['block'] !== undefined && offsetHeight > 0) this.#known[Number(dataset['block'])] = offsetHeight
  }

  /** The bottom position of each block. */
  ends(count: number): number[] {
    const known = Object.values(this.#known)
    const mean = known.length === 0 ? this.#guessPx : known.reduce((sum, px) => sum + px, 0) / known.length
    let end = 0
    return Array.from({ length: count }, (_, at) => (end += this.#known[at] ?? mean))
  }
}

function near(table: HTMLTableElement, ends: readonly number[]): number[] {
  const top = -table.getBoundingClientRect().top
  const isBelow = (px: number) => (end: number) => end > px
  const first = ends.findIndex(isBelow(top - MARGIN_PX))
  const last = ends.findIndex(isBelow(top + innerHeight + MARGIN_PX))
  const from = first === -1 ? ends.length - 1 : first
  return Array.from({ length: (last === -1 ? ends.length : last + 1) - from }, (_, i) => from + i)
}

function aroundFocus(table: HTMLTableElement): number[] {
  const focused = document.activeElement?.closest('tbody')
  const at = focused && table.contains(focused) ? Number(focused.dataset['block']) : Number.NaN
  return Number.isNaN(at) ? [] : [at - 1, at, at + 1]
}

/** The blocks that are shown, in their order, with room for the others. */
function partsOf(shown: readonly number[], ends: readonly number[]): Part[] {
  const blocks = [...new Set(shown)].filter((at) => at >= 0 && at < ends.length).toSorted((a, b) => a - b)
  const parts: Part[] = []
  let next = 0
  for (const block of [...blocks, ends.length]) {
    const px = (ends[block - 1] ?? 0) - (ends[next - 1] ?? 0)
    const gap = next === 0 ? 'above' : block === ends.length ? 'below' : 'between'
    if (px > 0) parts.push({ gap, px })
    if (block < ends.length) parts.push({ block })
    next = block + 1
  }
  return parts
}
