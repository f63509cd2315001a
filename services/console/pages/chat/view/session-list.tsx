import { useEffect } from 'preact/hooks'
import type { Schema, TenantEvent } from '../../../../../shared/client/api.ts'
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
import { begun, isListed } from '../model/first-message.ts'

type Session = Schema<'SessionInfoResponse'>

/** The conversations, the newest first. A conversation that this tab begins is listed at once. */
export function SessionList({ current }: { current: string | undefined }) {
  const concerns = ({ event, data }: TenantEvent) =>
    (event === 'run.started' || event === 'run.ended') && data['kind'] === 'message'
  const list = useList<Session>({ path: '/sessions', field: 'sessions', concerns })
  const listed = list.state.value.data?.items
  const newest = begun().value[0]?.id
  useEffect(() => {
    if (newest !== undefined) list.reload()
  }, [newest])
  useEffect(() => isListed(...(listed?.filter(({ title }) => title !== null).map(({ session_id: id }) => id) ?? [])))
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
          items.length + begun().value.length === 0 ? (
            <p class="soft small none">Conversations are listed here while they are in the server's memory.</p>
          ) : (
            <ul>
              {begun().value.map((own) => (
                <Row key={own.id} {...own} current={current} />
              ))}
              {items.map((session) => (
                <ListedRow key={session.session_id} session={session} current={current} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <More list={list} />
    </aside>
  )
}

function ListedRow({ session, current }: { session: Session; current: string | undefined }) {
  const { session_id: id, title, active_run_id: active, usage } = session
  if (begun().value.some((each) => each.id === id)) return null // The conversation is listed above, with its title.
  return (
    <Row
      id={id}
      title={title}
      current={current}
      isWorking={active !== null}
      at={session.last_message_at ?? session.created_at}
      cost={usage.cost_usd}
    />
  )
}

type RowProps = {
  id: string
  title: string | null
  current: string | undefined
  isWorking: boolean
  at?: string
  cost?: number
}

function Row({ id, title, current, isWorking, at, cost = 0 }: RowProps) {
  const isAsking = asks().value.some((ask) => ask.session_id === id)
  return (
    <li>
      <a href={hrefOf(`/chat/${encodeURIComponent(id)}`)} aria-current={id === current ? 'page' : undefined}>
        <span class="title">
          <Line text={title || 'New chat'} />
        </span>
        <span class="row tight small soft">
          <span class="grow cut">
            {at === undefined ? 'just now' : <Ago at={at} />}
            {cost > 0 && ` · ${money(cost)}`}
          </span>
          {isAsking ? <Mark icon="approvals" word="Needs you" /> : isWorking && <Mark icon="spinner" word="Working" />}
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
