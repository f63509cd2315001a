import type { Ask } from '../../../api/pending.ts'
import { hrefOf } from '../../../base/router.ts'
import { Deadline } from '../../../parts/ask/deadline.tsx'
import { summaryOf } from '../../../parts/ask/preview.tsx'
import { Icon } from '../../../parts/icon.tsx'

/** The requests of this conversation above the composer, also those whose place is out of sight or in another tab. */
export const PinnedAsks = ({ asks }: { asks: readonly Ask[] }) => (
  <>
    {asks.map((ask) => (
      <div key={ask.id} class="pinned" data-pinned={ask.id}>
        <Icon name="approvals" />
        <strong>{ask.tool_name}</strong>
        <span class="grow cut soft">{summaryOf(ask)}</span>
        <Deadline ask={ask} />
        <a class="button" href={hrefOf(`/approvals/${ask.id}`)} onClick={(event) => showInPlace(event, ask.id)}>
          Review
        </a>
      </div>
    ))}
  </>
)

/** Goes to the request's place in the conversation, where it is drawn. */
function showInPlace(event: MouseEvent, id: string): void {
  const card = document.querySelector(`[data-ask="${CSS.escape(id)}"]`)
  if (!card) return
  event.preventDefault()
  card.scrollIntoView({ block: 'center' })
}
