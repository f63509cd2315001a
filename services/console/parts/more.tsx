import type { List } from '../api/list.ts'

/** Shows the next page of a list below the others. */
export function More<Item>({ list }: { list: List<Item> }) {
  const { data } = list.state.value
  return (
    <>
      {data?.isIncomplete && <p class="soft small">A process did not answer: some entries may be missing.</p>}
      {data?.next !== undefined && (
        <button type="button" class="button" onClick={({ currentTarget }) => void showMore(list, currentTarget)}>
          Show more
        </button>
      )}
    </>
  )
}

const STOPS = 'a[href], button, input, select, summary'

/** Moves the focus to the first new entry, because the button has moved away. */
async function showMore<Item>(list: List<Item>, button: HTMLButtonElement): Promise<void> {
  const { parentElement: around } = button
  const stops = () => [...(around?.querySelectorAll<HTMLElement>(STOPS) ?? [])]
  const before = stops()
  const last = before[before.indexOf(button) - 1]
  await list.more()
  await new Promise(requestAnimationFrame)
  const hasMoved = document.activeElement !== button && document.activeElement !== document.body
  if (hasMoved || last?.isConnected !== true) return
  const next = stops()[stops().indexOf(last) + 1]
  if (next !== button) next?.focus({ preventScroll: true })
}
