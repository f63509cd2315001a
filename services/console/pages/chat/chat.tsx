import './chat.css'
import type { PageProps } from '../../base/router.ts'
import { lazy } from '../../parts/lazy.tsx'
import { ConversationView } from './view/conversation-view.tsx'
import { SessionList } from './view/session-list.tsx'

const NewChat = lazy(() => import('./view/new-chat.tsx').then((loaded) => loaded.NewChat))

/** Conversations: the sessions on the left, one of them beside it. */
export function Chat({ params, query }: PageProps) {
  const session = params['session']
  return (
    <div class={session === undefined && !query.has('new') && !query.has('try') ? 'chat is-list' : 'chat'}>
      <h1 class="visually-hidden">Chat</h1>
      <SessionList current={session} />
      {session === undefined ? (
        <NewChat key="new" suggestion={query.get('try')} />
      ) : (
        <ConversationView key={session} id={session} />
      )}
    </div>
  )
}
