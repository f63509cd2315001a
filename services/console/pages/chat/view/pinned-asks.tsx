import type { Ask } from '../../../api/pending.ts'
import { hrefOf } from '../../../base/router.ts'
import { Deadline } from '../../../parts/ask/deadline.tsx'
import { asksInSight } from '../../../parts/ask/in-sight.ts'
import { summaryOf } from '../../../parts/ask/preview.tsx'
import { Line } from '../../../parts/foreign.tsx'
import { Icon } from '../../../parts/icon.tsx'
import type { LiveRun } from '../../../parts/run/live-run.ts'
import { Countdown } from '../../../parts/time.tsx'

/** The requests of this conversation whose cards are not on the screen, shown above the composer. */
export const PinnedAsks = ({ asks }: { asks: readonly Ask[] }) => (
  <>
    {asks
      .filter(({ id }) => !asksInSight().value.has(id))
      .map((ask) => (
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

/** The calls that the program which started a run must execute: no person can answer them here. */
export const PinnedCalls = ({ live }: { live: LiveRun | undefined }) => (
  <>
    {(live?.view.value.blocks ?? []).map(
      (block) =>
        block.kind === 'tool' &&
        block.call.expires_at &&
        !block.result && (
          <div key={block.call.id} class="pinned" data-pinned={block.call.id}>
            <Icon name="clock" />
            <span class="grow cut">
              Waits for the caller’s tool{' '}
              <strong>
                <Line text={block.call.tool_name} />
              </strong>
            </span>
            <Countdown until={block.call.expires_at} />
          </div>
        ),
    )}
  </>
)

/** Goes to the request's place in the conversation, where it is drawn. */
function showInPlace(event: MouseEvent, id: string): void {
  const card = document.querySelector(`[data-ask="${CSS.escape(id)}"]`)
  if (!card) return
  event.preventDefault()
  card.scrollIntoView({ block: 'center' })
}
