import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Clock, clock, stillClock } from '../base/clock.ts'
import { memo } from './memo.ts'
import './long-table.css'

type LongTableProps<Item> = {
  /** Names the widths of its columns: `--columns` of this class. */
  look: string
  head: ComponentChildren
  items: readonly Item[]
  /** Gives the same row for the same item, always: what was drawn is not drawn again. */
  row(item: Item): ComponentChildren
}

const ROWS = 25

/**
 * A table of thousands of rows. They stand in blocks, of which the browser lays out those near the screen only; each is a grid, as a table
 * without fixed columns has to be laid out as a whole. The roles are named since a grid would take them away.
 */
export function LongTable<Item>({ look, head, items, row }: LongTableProps<Item>) {
  const blocks = useBlocks(items)
  return (
    <div class="card table-wrap">
      <table class={`table cards long ${look}`} role="table">
        <thead role="rowgroup">
          <tr role="row">{head}</tr>
        </thead>
        {blocks.map((block, i) => (
          <Block key={i} items={block} row={row as (item: unknown) => ComponentChildren} />
        ))}
      </table>
    </div>
  )
}

type BlockProps = { items: readonly unknown[]; row(item: unknown): ComponentChildren }

/** While nobody sees it, its times stand still. */
const Block = memo(({ items, row }: BlockProps) => {
  const body = useRef<HTMLTableSectionElement>(null)
  const isSeen = useSignal(true)
  useEffect(() => {
    const note = (event: Event) => (isSeen.value = !(event as ContentVisibilityAutoStateChangeEvent).skipped)
    body.current?.addEventListener('contentvisibilityautostatechange', note)
    return () => body.current?.removeEventListener('contentvisibilityautostatechange', note)
  }, [])
  return (
    <Clock.Provider value={isSeen.value ? clock : stillClock}>
      <tbody role="rowgroup" ref={body}>
        {items.map((item) => row(item))}
      </tbody>
    </Clock.Provider>
  )
})

/** The items in parts; one that has the same items as before is the same list. */
function useBlocks<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  const known = useRef<readonly (readonly Item[])[]>([])
  const count = Math.ceil(items.length / ROWS)
  known.current = Array.from({ length: count }, (_, i) => {
    const block = items.slice(i * ROWS, (i + 1) * ROWS)
    const before = known.current[i] ?? []
    return before.length === block.length && block.every((item, at) => item === before[at]) ? before : block
  })
  return known.current
}
