import { useResource } from '../../api/resource.ts'
import { AskCard } from '../../parts/ask/ask-card.tsx'
import { Overtaken } from '../../parts/ask/overtaken.tsx'
import { Preview } from '../../parts/ask/preview.tsx'
import { type Decided, findRequest, isDecided, sentenceOf } from '../../parts/ask/reply.ts'
import { Failure } from '../../parts/loading.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'
import { AskContext } from './ask-context.tsx'
import { DecisionBadge } from './decision-badge.tsx'

/** Shows the request that a link names when the list does not have it: it was decided, or too many wait to be listed. */
export function Outcome({ id }: { id: string }) {
  const isOver = ({ event, data }: { event: string; data: Record<string, unknown> }) =>
    event === 'permission.resolved' && data['request_id'] === id
  const { state, reload } = useResource(id, () => findRequest(id), isOver)
  const { data, error, isLoading } = state.value
  if (error) return <Failure error={error} onRetry={reload} />
  if (!data && isLoading) return null
  if (!data)
    return <Empty title="This request is not known">It was decided long ago, or belongs to another tenant.</Empty>
  if (isDecided(data)) return <Receipt decided={data} />
  return (
    <AskCard key={id} ask={data} hasKeys>
      <AskContext ask={data} />
    </AskCard>
  )
}

/** How a request was decided, by whom, and what it was about, as whoever decided it has seen it. */
function Receipt({ decided }: { decided: Decided }) {
  const sentence = sentenceOf(decided)
  return (
    <section class="card padded stack" aria-label="Decision">
      <div class="row">
        <DecisionBadge decided={decided} />
        <strong>{decided.tool_name}</strong>
        <span class="soft">
          {sentence.charAt(0).toUpperCase() + sentence.slice(1)}, <Ago at={decided.decided_at} />
        </span>
      </div>
      {decided.reason && <p>Reason: {decided.reason}</p>}
      <Overtaken id={decided.id} decided={decided} />
      {decided.message && <p class="soft">{decided.message}</p>}
      {decided.input && <Preview ask={{ ...decided, input: decided.input }} />}
    </section>
  )
}
