import { CopyAs } from '../../../parts/copy-as.tsx'
import { EventLines } from '../../../parts/run/event-lines.tsx'
import { WorkspaceFiles } from '../../../parts/run/workspace-files.tsx'
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

/** What lies in the workspace of the conversation. */
export function FileDrawer({ sessionId }: { sessionId: string }) {
  const path = `/sessions/${encodeURIComponent(sessionId)}/files`
  return (
    <aside class="drawer" aria-label="Files">
      <div class="row tight">
        <h3 class="grow">Files</h3>
        <CopyAs method="GET" path={path} />
      </div>
      <WorkspaceFiles
        path={path}
        nothing="Nothing lies in the workspace of this conversation yet."
        concerns={({ data }) => data['session_id'] === sessionId}
      />
    </aside>
  )
}
