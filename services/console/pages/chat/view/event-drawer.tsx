import { CopyAs } from '../../../parts/copy-as.tsx'
import { EventLines } from '../../../parts/run/event-lines.tsx'
import type { Exchange } from '../model/exchange.ts'

/** The raw events of the newest run. */
export function EventDrawer({ exchanges }: { exchanges: readonly Exchange[] }) {
  const live = exchanges.findLast((exchange) => exchange.live)?.live
  return (
    <aside class="drawer" aria-label="Events">
      <div class="row tight">
        <h3 class="grow">Events</h3>
        {live?.id !== undefined && <CopyAs method="GET" path={`/runs/${live.id}/events`} />}
      </div>
      {live ? (
        <EventLines live={live} />
      ) : (
        <p class="soft small">Send a message to see its events. Those of earlier runs are in Activity.</p>
      )}
    </aside>
  )
}
