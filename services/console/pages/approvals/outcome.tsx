import { useEffect, useRef } from 'preact/hooks'
import { asks, waitingCount } from '../../api/pending.ts'
import { useResource } from '../../api/resource.ts'
import { hrefOf } from '../../base/router.ts'
import { Overtaken } from '../../parts/ask/overtaken.tsx'
import { Preview } from '../../parts/ask/preview.tsx'
import { type Decided, findRequest, given, isDecided, sentenceOf } from '../../parts/ask/reply.ts'
import { Line, Lines } from '../../parts/foreign.tsx'
import { Failure } from '../../parts/loading.tsx'
import { Empty } from '../../parts/notice.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'
import { Ago } from '../../parts/time.tsx'
import { AskContext } from './ask-context.tsx'
import { Batch } from './batch.tsx'

/** Shows the request of a link if the list does not contain it: it was decided, or too many requests wait. */
export function Outcome({ id }: { id: string }) {
  const own = given().get(id)
  return own ? <Receipt decided={own} isOwn /> : <Found id={id} />
}

function Found({ id }: { id: string }) {
  const isOver = ({ event, data }: { event: string; data: Record<string, unknown> }) =>
    event === 'permission.resolved' && data['request_id'] === id
  const { state, reload } = useResource(id, () => findRequest(id), isOver)
  const { data, error, isLoading } = state.value
  if (error) return <Failure error={error} onRetry={reload} />
  if (!data && isLoading) return null
  if (!data)
    return <Empty title="This request is not known">It was decided long ago, or belongs to another tenant.</Empty>
  return isDecided(data) ? <Receipt decided={data} /> : <Batch key={id} batch={[data]} chosen={data} />
}

/** How a request was decided and by whom, with the call as that person has seen it; and a link to the next request. */
function Receipt({ decided, isOwn = false }: { decided: Decided; isOwn?: boolean }) {
  const sentence = sentenceOf(decided)
  return (
    <section class="card padded stack receipt" aria-label="Decision">
      <div class="row">
        <DecisionBadge decided={decided} />
        <strong>
          <Line text={decided.tool_name} />
        </strong>
        <span class="grow soft">
          {sentence.charAt(0).toUpperCase() + sentence.slice(1)}, <Ago at={decided.decided_at} />
        </span>
        <Next isOwn={isOwn} />
      </div>
      {decided.remembered && <p>It asks no more in this session: Remembered lists it, and takes that back.</p>}
      {decided.reason && <p>Reason: {decided.reason}</p>}
      <Overtaken id={decided.id} decided={decided} />
      <AskContext ask={decided} />
      {decided.message && (
        <p class="soft">
          <Lines text={decided.message} />
        </p>
      )}
      {decided.input && <Preview ask={{ ...decided, input: decided.input }} />}
    </section>
  )
}

/** Gets the focus after the person's own answer, so that Enter goes to the next request and does not allow anything. */
function Next({ isOwn }: { isOwn: boolean }) {
  const link = useRef<HTMLAnchorElement>(null)
  useEffect(() => {
    if (isOwn && document.activeElement === document.body) link.current?.focus({ preventScroll: true })
  }, [])
  const [next] = asks().value
  if (!next) return <span class="soft small">Nothing else waits.</span>
  return (
    <a ref={link} class="button" href={hrefOf(`/approvals/${next.id}`)}>
      Next request ({waitingCount().value})
    </a>
  )
}

export const DecisionBadge = ({ decided: { allow, how } }: { decided: Decided }) => (
  <StateBadge
    state={how === 'timeout' ? 'expired' : how === 'cancelled' ? 'withdrawn' : allow ? 'allowed' : 'denied'}
  />
)
