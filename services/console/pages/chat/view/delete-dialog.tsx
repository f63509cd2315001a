import { send } from '../../../api/engine.ts'
import { tell, tellFailure } from '../../../base/announce.ts'
import { hrefOf, navigate } from '../../../base/router.ts'
import { Dialog } from '../../../parts/dialog.tsx'
import { Line } from '../../../parts/foreign.tsx'
import type { Conversation } from '../model/conversation.ts'
import { isListed } from '../model/first-message.ts'

type DeleteProps = { conversation: Conversation; path: string; onClose(): void }

export function DeleteDialog({ conversation, path, onClose }: DeleteProps) {
  const title = conversation.title.value || 'this conversation'
  const remove = async () => {
    await send('DELETE', path).then(() => tell('The conversation is deleted'), tellFailure)
    isListed(conversation.id)
    onClose()
    navigate(hrefOf('/chat'))
  }
  return (
    <Dialog label="Delete the conversation" onClose={onClose}>
      <div class="stack">
        <h2>Delete the conversation?</h2>
        <p>
          “<Line text={title} />” and its history are removed, a run that goes on is cancelled, and what was allowed for
          it is forgotten.
        </p>
        <div class="row">
          <button type="button" class="button danger" onClick={() => void remove()}>
            Delete the conversation
          </button>
          <button type="button" class="button plain" onClick={onClose}>
            Keep it
          </button>
        </div>
      </div>
    </Dialog>
  )
}
