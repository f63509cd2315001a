import { type Signal, signal, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { may } from '../../api/caller.ts'
import type { Ask } from '../../api/pending.ts'
import { counted } from '../../base/format.ts'
import { useArmed } from '../../parts/ask/ask-actions.tsx'
import { AskCard } from '../../parts/ask/ask-card.tsx'
import { replyAll } from '../../parts/ask/reply.ts'
import { Line } from '../../parts/foreign.tsx'
import { AskContext } from './ask-context.tsx'
import { DenyAll } from './deny-all.tsx'

type BatchProps = { batch: readonly Ask[]; chosen: Ask }

/** A request, or several equal ones side by side: they are answered one by one, or together after each was shown to its end. */
export function Batch({ batch, chosen }: BatchProps) {
  const seen = useMemo(() => new Map<string, Signal<boolean>>(), [])
  const isSeen = (id: string) => {
    const known = seen.get(id) ?? signal(false)
    seen.set(id, known)
    return known
  }
  const isBusy = useSignal(false)
  const isAlone = batch.length === 1
  return (
    <section class="stack" aria-label={isAlone ? 'Request' : 'Equal requests'}>
      {!isAlone && (
        <Together batch={batch} chosen={chosen} areSeen={batch.every(({ id }) => isSeen(id).value)} isBusy={isBusy} />
      )}
      <div class="batch">
        {batch.map((ask, i) => (
          <AskCard
            key={ask.id}
            ask={ask}
            isSeen={isSeen(ask.id)}
            page={{ hasKeys: ask === chosen, next: (batch[i + 1] ?? batch[i - 1] ?? ask).id }}
          >
            {isAlone && <AskContext ask={ask} />}
          </AskCard>
        ))}
      </div>
    </section>
  )
}

/** `isBusy` stays true until all are answered, although each request leaves the batch as soon as it is answered. */
type TogetherState = { areSeen: boolean; isBusy: Signal<boolean> }

/** The common part of equal requests, and the buttons that answer all of them. */
const Together = ({ batch, chosen, ...state }: BatchProps & TogetherState) => (
  <header class="stack close">
    <h2>
      {batch.length} requests for <Line text={chosen.tool_name} />
    </h2>
    <AskContext ask={chosen} />
    {may('approve') && (
      <div class="row">
        <AllowAll key={batch.map(({ id }) => id).join()} asks={batch} {...state} />
        <DenyAll asks={batch} />
      </div>
    )}
  </header>
)

/**
 * The key contains the ids of the requests: when they change, the button is created again and must be visible for a
 * while before it can be pressed.
 */
function AllowAll({ asks, areSeen, isBusy }: { asks: readonly Ask[] } & TogetherState) {
  const isArmed = useArmed()
  const allow = async () => {
    isBusy.value = true
    await replyAll(asks, { allow: true })
    isBusy.value = false
  }
  return (
    <>
      <button
        type="button"
        class="button main"
        disabled={!isArmed || !areSeen || isBusy.value}
        onClick={() => void allow()}
      >
        Allow {counted(asks.length, 'request')}
      </button>
      {!areSeen && isArmed && <p class="soft small">Read each of them to its end first.</p>}
    </>
  )
}
