import type { List } from '../api/list.ts'

/** Shows the next page of a list below the others. */
export function More<Item>({ list }: { list: List<Item> }) {
  const { data } = list.state.value
  return (
    <>
      {data?.isIncomplete && <p class="soft small">A process did not answer: some entries may be missing.</p>}
      {data?.next !== undefined && (
        <button type="button" class="button" onClick={() => void list.more()}>
          Show more
        </button>
      )}
    </>
  )
}
