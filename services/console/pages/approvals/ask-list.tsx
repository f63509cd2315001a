import type { Signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { may } from '../../api/caller.ts'
import type { Ask } from '../../api/pending.ts'
import { isChord, isTyping } from '../../base/keys.ts'
import { hrefOf, navigate } from '../../base/router.ts'
import { AskSummary } from '../../parts/ask/ask-summary.tsx'

type AskListProps = { waiting: readonly Ask[]; chosen: string | undefined; selected: Signal<ReadonlySet<string>> }

/** The waiting requests, the nearest deadline first. `j` and `k` move through them. */
export function AskList({ waiting, chosen, selected }: AskListProps) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const step = { j: 1, k: -1 }[event.key]
      if (step === undefined || isTyping(event.target) || isChord(event)) return
      const next = waiting[waiting.findIndex(({ id }) => id === chosen) + step]
      if (next) navigate(hrefOf(`/approvals/${next.id}`), { replace: true })
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })
  return (
    <ul class="card asks" aria-label="Waiting requests">
      {waiting.map((ask) => (
        <AskRow key={ask.id} ask={ask} isChosen={ask.id === chosen} selected={selected} />
      ))}
    </ul>
  )
}

type AskRowProps = { ask: Ask; isChosen: boolean; selected: Signal<ReadonlySet<string>> }

function AskRow({ ask, isChosen, selected }: AskRowProps) {
  const toggle = () => {
    const next = new Set(selected.value)
    if (!next.delete(ask.id)) next.add(ask.id)
    selected.value = next
  }
  return (
    <li data-chosen={isChosen}>
      {may('approve') && (
        <input
          type="checkbox"
          aria-label={`Select the request for ${ask.tool_name}`}
          checked={selected.value.has(ask.id)}
          onChange={toggle}
        />
      )}
      <a href={hrefOf(`/approvals/${ask.id}`)} aria-current={isChosen ? 'true' : undefined}>
        <AskSummary ask={ask} />
      </a>
    </li>
  )
}
