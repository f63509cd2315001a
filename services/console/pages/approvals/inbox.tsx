import { useSignal } from '@preact/signals'
import { may } from '../../api/caller.ts'
import { type Ask, asks, pending, readMorePending, waitingCount } from '../../api/pending.ts'
import { hrefOf } from '../../base/router.ts'
import { AskCard } from '../../parts/ask/ask-card.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Failure } from '../../parts/loading.tsx'
import { Empty } from '../../parts/notice.tsx'
import { AskContext } from './ask-context.tsx'
import { AskList } from './ask-list.tsx'
import { DenySelected } from './deny-selected.tsx'
import { Outcome } from './outcome.tsx'

/** The list of what waits, and the chosen request beside it. */
export function Inbox({ id }: { id: string | undefined }) {
  const selected = useSignal<ReadonlySet<string>>(new Set())
  const { data, error } = pending().state.value
  if (data === undefined && error) return <Failure error={error} onRetry={pending().reload} />
  const waiting = asks().value
  const chosen = waiting.find((ask) => ask.id === id) ?? (id === undefined ? waiting[0] : undefined)
  return (
    <>
      {may('approve') && <DenySelected selected={selected} />}
      {waitingCount().value === 0 && id === undefined ? (
        data !== undefined && <NothingWaits />
      ) : (
        <div class={id === undefined ? 'inbox' : 'inbox has-chosen'}>
          <div class="stack close">
            <AskList waiting={waiting} chosen={chosen?.id} selected={selected} />
            <MoreAsks />
          </div>
          <div class="detail">
            {id !== undefined && (
              <a class="button plain back" href={hrefOf('/approvals')}>
                <Icon name="back" /> All requests
              </a>
            )}
            <Chosen ask={chosen} id={id} isKnown={data !== undefined} />
          </div>
        </div>
      )}
    </>
  )
}

/** What a long list leaves out is said, and can be read. */
function MoreAsks() {
  const [shown, all] = [asks().value.length, waitingCount().value]
  if (shown >= all) return null
  return (
    <div class="row">
      <span class="grow soft small">
        {shown} of {all} are shown.
      </span>
      <button type="button" class="button" onClick={readMorePending}>
        Show more
      </button>
    </div>
  )
}

type ChosenProps = { ask: Ask | undefined; id: string | undefined; isKnown: boolean }

function Chosen({ ask, id, isKnown }: ChosenProps) {
  if (ask)
    return (
      <AskCard key={ask.id} ask={ask} hasKeys>
        <AskContext ask={ask} />
      </AskCard>
    )
  return id !== undefined && isKnown ? <Outcome key={id} id={id} /> : null
}

const NothingWaits = () => (
  <Empty
    title="Nothing waits for you"
    action={
      may('run') && (
        <a class="button main" href={hrefOf('/chat', { try: 'permission' })}>
          Try one in a chat
        </a>
      )
    }
  >
    When an agent wants to use a tool that needs permission, its request appears here, in the chat, and in the webhooks
    of your tenant.
  </Empty>
)
