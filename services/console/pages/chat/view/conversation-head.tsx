import { type Signal, useSignal } from '@preact/signals'
import { hrefOf } from '../../../base/router.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Line } from '../../../parts/foreign.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { lazy } from '../../../parts/lazy.tsx'
import type { Conversation } from '../model/conversation.ts'

const DeleteDialog = lazy(() => import('./delete-dialog.tsx').then((loaded) => loaded.DeleteDialog))

/** The panel beside the conversation. */
export type Drawer = 'files' | 'events' | undefined

type HeadProps = { conversation: Conversation; drawer: Signal<Drawer> }

export function ConversationHead({ conversation, drawer }: HeadProps) {
  const isDeleting = useSignal(false)
  const path = `/sessions/${encodeURIComponent(conversation.id)}`
  const from = conversation.info.value?.from
  return (
    <header class="conversation-head">
      <a class="button plain icon only-phone" href={hrefOf('/chat')} aria-label="All conversations">
        <Icon name="back" />
      </a>
      <h2 class="grow cut">
        <Line text={conversation.title.value || 'Chat'} />
      </h2>
      {from && (
        <a class="small origin" href={hrefOf(`/chat/${encodeURIComponent(from.session_id)}`)}>
          Fork of another one
        </a>
      )}
      <CopyAs method="POST" path={`${path}/messages`} body={{ prompt: 'Hello' }} />
      <DrawerButton name="files" label="Files" drawer={drawer} />
      <DrawerButton name="events" label="Events" drawer={drawer} />
      <button
        type="button"
        class="button plain icon"
        aria-label="Delete this conversation"
        onClick={() => (isDeleting.value = true)}
      >
        <Icon name="trash" />
      </button>
      {isDeleting.value && (
        <DeleteDialog conversation={conversation} path={path} onClose={() => (isDeleting.value = false)} />
      )}
    </header>
  )
}

const DrawerButton = ({ name, label, drawer }: { name: Drawer; label: string; drawer: Signal<Drawer> }) => (
  <button
    type="button"
    class="button plain"
    aria-pressed={drawer.value === name}
    onClick={() => (drawer.value = drawer.value === name ? undefined : name)}
  >
    {label}
  </button>
)
