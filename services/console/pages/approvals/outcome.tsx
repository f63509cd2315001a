import { useResource } from '../../api/resource.ts'
import { findDecided, sentenceOf } from '../../parts/ask/reply.ts'
import { Json } from '../../parts/json.tsx'
import { Failure } from '../../parts/loading.tsx'
import { Empty } from '../../parts/notice.tsx'
import { Ago } from '../../parts/time.tsx'
import { DecisionBadge } from './decision-badge.tsx'

/** A request of a link that waits no more: how it was decided, and by whom. */
export function Outcome({ id }: { id: string }) {
  const { state, reload } = useResource(id, () => findDecided(id))
  const { data, error, isLoading } = state.value
  if (isLoading) return null
  if (error) return <Failure error={error} onRetry={reload} />
  if (!data)
    return <Empty title="This request is not known">It was decided long ago, or belongs to another tenant.</Empty>
  const sentence = sentenceOf(data)
  return (
    <section class="card padded stack" aria-label="Decision">
      <div class="row">
        <DecisionBadge decided={data} />
        <strong>{data.tool_name}</strong>
        <span class="soft">
          {sentence.charAt(0).toUpperCase() + sentence.slice(1)}, <Ago at={data.decided_at} />
        </span>
      </div>
      {data.reason && <p>Reason: {data.reason}</p>}
      {data.message && <p class="soft">{data.message}</p>}
      {data.input && <Json value={data.input} />}
    </section>
  )
}
