import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { asks } from '../../../api/pending.ts'
import { hrefOf } from '../../../base/router.ts'
import { lazy } from '../../../parts/lazy.tsx'
import { Failure } from '../../../parts/loading.tsx'
import { Empty } from '../../../parts/notice.tsx'
import { Conversation } from '../model/conversation.ts'
import { takeOver } from '../model/first-message.ts'
import { Composer } from './composer.tsx'
import { ConversationHead, type Drawer } from './conversation-head.tsx'
import { ExchangeView } from './exchange-view.tsx'
import { StatusLine } from './status-line.tsx'
import { useStickToEnd } from './stick-to-end.ts'

const PinnedAsks = lazy(() => import('./pinned-asks.tsx').then((loaded) => loaded.PinnedAsks))
const PinnedCalls = lazy(() => import('./pinned-asks.tsx').then((loaded) => loaded.PinnedCalls))

const EventDrawer = lazy(() => import('./drawers.tsx').then((loaded) => loaded.EventDrawer))
const FileDrawer = lazy(() => import('./drawers.tsx').then((loaded) => loaded.FileDrawer))

export function ConversationView({ id }: { id: string }) {
  const conversation = useMemo(() => new Conversation(id), [id])
  const draft = useSignal('')
  const drawer = useSignal<Drawer>(undefined)
  useEffect(() => {
    const first = takeOver(id)
    const stop = conversation.watch()
    if (first) void conversation.send(first)
    return stop
  }, [conversation])
  const { state, exchanges } = conversation
  if (state.value === 'gone') return <Gone />
  if (state.value instanceof Error) return <Failure error={state.value} onRetry={() => void conversation.load()} />
  const isBusy = conversation.open.value.length > 0
  return (
    <section class={drawer.value ? 'conversation has-drawer' : 'conversation'} aria-label="Conversation">
      <ConversationHead conversation={conversation} drawer={drawer} />
      <Exchanges conversation={conversation} />
      {drawer.value === 'events' && <EventDrawer exchanges={exchanges.value} />}
      {drawer.value === 'files' && <FileDrawer sessionId={id} />}
      <div class="foot">
        <PinnedAsks asks={asks().value.filter((ask) => ask.session_id === id)} />
        <PinnedCalls live={conversation.open.value[0]?.live} />
        <Composer
          draft={draft}
          isBusy={isBusy}
          refused={conversation.refused.value}
          onSend={(message) => void conversation.send(message)}
          onSteer={conversation.steer}
          onStop={() => void conversation.stop()}
          waiting={conversation.open.value.length - 1}
        />
        <StatusLine conversation={conversation} />
      </div>
    </section>
  )
}

function Exchanges({ conversation }: { conversation: Conversation }) {
  const scroll = useRef<HTMLDivElement>(null)
  useStickToEnd(scroll)
  const all = conversation.exchanges.value
  const drawn = useSteps(all.length)
  return (
    <div ref={scroll} class="scroll" role="log" aria-label="Messages" aria-live="off" tabIndex={0}>
      <div class="exchanges">
        {all.slice(-drawn).map((exchange) => (
          <ExchangeView key={exchange.key} exchange={exchange} conversation={conversation} />
        ))}
      </div>
    </div>
  )
}

/** The number of exchanges that are drawn at once: drawing a whole long conversation would block the page. */
const PER_STEP = 20

/** How many of the newest exchanges are drawn. The number grows with each animation frame, up to `count`. */
function useSteps(count: number): number {
  const drawn = useSignal(PER_STEP)
  useEffect(() => {
    if (drawn.value >= count) return
    const frame = requestAnimationFrame(() => setTimeout(() => (drawn.value += PER_STEP)))
    return () => cancelAnimationFrame(frame)
  }, [drawn.value, count])
  return drawn.value
}

const Gone = () => (
  <Empty
    title="This conversation is over"
    action={
      <a class="button main" href={hrefOf('/chat', { new: '1' })}>
        New chat
      </a>
    }
  >
    Sessions live in the server's memory. One that is idle for too long, is deleted, or whose process has ended is gone;
    its runs stay in Activity.
  </Empty>
)
