import type { Schema } from '../../../../../shared/client/api.ts'
import { useList } from '../../../api/list.ts'
import { asks } from '../../../api/pending.ts'
import { money } from '../../../base/format.ts'
import { hrefOf } from '../../../base/router.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Line } from '../../../parts/foreign.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Loaded } from '../../../parts/loading.tsx'
import { More } from '../../../parts/more.tsx'
import { Ago } from '../../../parts/time.tsx'

type Session = Schema<'SessionInfoResponse'>

export function SessionList({ current }: { current: string | undefined }) {
  const concerns = ({ event, data }: { event: string; data: Record<string, unknown> }) =>
    (event === 'run.started' || event === 'run.ended') && data['kind'] === 'message'
  const list = useList<Session>({ path: '/sessions', field: 'sessions', concerns })
  return (
    <aside class="sessions" aria-label="Conversations">
      <div class="row tight head">
        <a class="button grow" href={hrefOf('/chat', { new: '1' })}>
          <Icon name="plus" /> New chat
        </a>
        <CopyAs method="GET" path="/sessions" />
      </div>
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="soft small none">Conversations are listed here while they are in the server's memory.</p>
          ) : (
            <ul>
              {items.map((session) => (
                <Row key={session.session_id} session={session} isCurrent={session.session_id === current} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <More list={list} />
    </aside>
  )
}

function Row({ session, isCurrent }: { session: Session; isCurrent: boolean }) {
  const {
    session_id: id,
    title,
    last_message_at: lastAt,
    created_at: createdAt,
    active_run_id: active,
    usage,
  } = session
  const isAsking = asks().value.some((ask) => ask.session_id === id)
  return (
    <li>
      <a href={hrefOf(`/chat/${encodeURIComponent(id)}`)} aria-current={isCurrent ? 'page' : undefined}>
        <span class="cut title">
          <Line text={title ?? 'New chat'} />
        </span>
        <span class="row tight small soft">
          <span class="grow cut">
            <Ago at={lastAt ?? createdAt} />
            {usage.cost_usd > 0 && ` · ${money(usage.cost_usd)}`}
          </span>
          {isAsking ? (
            <Mark icon="approvals" word="Needs you" />
          ) : (
            active !== null && <Mark icon="spinner" word="Working" />
          )}
        </span>
      </a>
    </li>
  )
}

const Mark = ({ icon, word }: { icon: 'approvals' | 'spinner'; word: string }) => (
  <span class={`badge ${icon === 'spinner' ? 'busy' : 'warn'}`}>
    <Icon name={icon} />
    {word}
  </span>
)
