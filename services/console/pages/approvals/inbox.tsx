import { useSignal } from '@preact/signals'
import { may } from '../../api/caller.ts'
import { asks, pending, readMorePending, waitingCount } from '../../api/pending.ts'
import { hrefOf } from '../../base/router.ts'
import { batchesOf, batchKey } from '../../parts/ask/batches.ts'
import { Icon } from '../../parts/icon.tsx'
import { Failure } from '../../parts/loading.tsx'
import { Empty } from '../../parts/notice.tsx'
import { AskList } from './ask-list.tsx'
import { Batch } from './batch.tsx'
import { DenyAll } from './deny-all.tsx'
import { Outcome } from './outcome.tsx'

/** The list of waiting requests, and the chosen request beside it. */
export function Inbox({ id }: { id: string | undefined }) {
  const selected = useSignal<ReadonlySet<string>>(new Set())
  const { data, error } = pending().state.value
  if (data === undefined && error) return <Failure error={error} onRetry={pending().reload} />
  const waiting = asks().value
  const batches = batchesOf(waiting)
  const chosen = waiting.find((ask) => ask.id === id) ?? (id === undefined ? waiting[0] : undefined)
  const batch = batches.find((each) => each.some((ask) => ask === chosen))
  const marked = waiting.filter((ask) => selected.value.has(ask.id))
  return (
    <>
      {may('approve') && <DenyAll asks={marked} onDone={() => (selected.value = new Set())} />}
      {waitingCount().value === 0 && id === undefined ? (
        data !== undefined && <NothingWaits />
      ) : (
        <div class={id === undefined ? 'inbox' : 'inbox has-chosen'}>
          <div class="stack close">
            <AskList batches={batches} chosen={batch} selected={selected} />
            <MoreAsks />
          </div>
          <div class="detail">
            {id !== undefined && (
              <a class="button plain back" href={hrefOf('/approvals')}>
                <Icon name="back" /> All requests
              </a>
            )}
            {chosen && batch && <Batch key={batchKey(chosen)} batch={batch} chosen={chosen} />}
            {!chosen && id !== undefined && data !== undefined && <Outcome key={id} id={id} />}
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

const NothingWaits = () => (
  <Empty
    title="Nothing waits for you"
    how={[
      'An agent asks before it uses a tool that changes something, and its work waits for the answer.',
      'The request is here, in its chat and in the webhooks of your tenant, with what the call would do.',
      'Allow it once or for the session, change it first, or deny it with a reason that the model reads.',
    ]}
    action={
      may('run') && (
        <a class="button main" href={hrefOf('/chat', { try: 'permission' })}>
          Try one in a chat
        </a>
      )
    }
  />
)
