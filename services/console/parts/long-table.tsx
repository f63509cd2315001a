import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { memo } from './memo.ts'
import { useWindow } from './window.ts'
import './long-table.css'

type LongTableProps<Item> = {
  /** The CSS class whose `--columns` sets the widths of the columns, unless `widths` is given. */
  look: string
  columns?: string | undefined
  head: ComponentChildren
  items: readonly Item[]
  /** Must always return the same row for the same item, so that it is not drawn again. The row contains its number for screen readers. */
  row(item: Item, number: number): ComponentChildren
}

const ROWS = 5
const ROW_PX = 41

/**
 * A table of thousands of rows. The rows are in blocks, and only the blocks near the screen are drawn. Each row is a grid, because a table
 * without fixed columns must be laid out as a whole. The roles are set explicitly because a grid removes them.
 */
export function LongTable<Item>({ look, columns, head, items, row }: LongTableProps<Item>) {
  const table = useRef<HTMLTableElement>(null)
  const blocks = useBlocks(items)
  const parts = useWindow(table, blocks.length, ROWS * ROW_PX)
  return (
    <div class="card table-wrap">
      <table
        class={`table cards long ${look}`}
        role="table"
        aria-rowcount={items.length + 1}
        style={columns === undefined ? {} : { '--columns': columns }}
        ref={table}
      >
        <thead role="rowgroup">
          <tr role="row" aria-rowindex={1}>
            {head}
          </tr>
        </thead>
        {parts.map((part) =>
          'block' in part ? (
            <Block key={part.block} at={part.block} items={blocks[part.block] ?? []} row={row as BlockProps['row']} />
          ) : (
            <tbody key={part.gap} aria-hidden="true" style={{ height: `${part.px}px` }} />
          ),
        )}
      </table>
    </div>
  )
}

type BlockProps = { at: number; items: readonly unknown[]; row(item: unknown, number: number): ComponentChildren }

const Block = memo(({ at, items, row }: BlockProps) => (
  <tbody role="rowgroup" data-block={at}>
    {items.map((item, i) => row(item, at * ROWS + i + 2))}
  </tbody>
))

/** The items in parts. A part whose items are unchanged stays the same array, so that it is not drawn again. */
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
