import type { Signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { may } from '../../api/caller.ts'
import type { Ask } from '../../api/pending.ts'
import { isChord, isTyping } from '../../base/keys.ts'
import { hrefOf, navigate } from '../../base/router.ts'
import { AskSummary } from '../../parts/ask/ask-summary.tsx'

type AskListProps = {
  batches: readonly (readonly Ask[])[]
  chosen: readonly Ask[] | undefined
  selected: Signal<ReadonlySet<string>>
}

/** The waiting requests, the nearest deadline first, and equal requests as one entry. `j` and `k` move through them. */
export function AskList({ batches, chosen, selected }: AskListProps) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const step = { j: 1, k: -1 }[event.key]
      if (step === undefined || isTyping(event.target) || isChord(event)) return
      const [next] = batches[batches.findIndex((batch) => batch === chosen) + step] ?? []
      if (next) navigate(hrefOf(`/approvals/${next.id}`), { replace: true })
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })
  return (
    <ul class="card asks" aria-label="Waiting requests">
      {batches.map((batch) => (
        <BatchRow key={batch[0]?.id} batch={batch} isChosen={batch === chosen} selected={selected} />
      ))}
    </ul>
  )
}

type BatchRowProps = { batch: readonly Ask[]; isChosen: boolean; selected: Signal<ReadonlySet<string>> }

function BatchRow({ batch, isChosen, selected }: BatchRowProps) {
  const [first] = batch
  if (!first) return null
  const isSelected = batch.every(({ id }) => selected.value.has(id))
  const toggle = () => {
    const next = new Set(selected.value)
    for (const { id } of batch)
      if (isSelected) next.delete(id)
      else next.add(id)
    selected.value = next
  }
  const name = batch.length > 1 ? `${batch.length} requests` : 'request'
  return (
    <li data-chosen={isChosen}>
      {may('approve') && (
        <input
          type="checkbox"
          aria-label={`Select the ${name} for ${first.tool_name}`}
          checked={isSelected}
          onChange={toggle}
        />
      )}
      <a href={hrefOf(`/approvals/${first.id}`)} aria-current={isChosen ? 'true' : undefined}>
        <AskSummary ask={first} others={batch.length - 1} />
      </a>
    </li>
  )
}
