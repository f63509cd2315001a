import { useSignal } from '@preact/signals'
import type { LiveRun } from './live-run.ts'

/** How many of the newest matching events are shown. */
const SHOWN = 200

/** The raw events of a run, as they came. */
export function EventLines({ live }: { live: LiveRun }) {
  const filter = useSignal('')
  const lastEventId = live.view.value.lastEventId // Drawn again when events have come.
  const frames = live.frames.filter(({ event }) => event.includes(filter.value))
  return (
    <div class="event-lines" data-last={lastEventId}>
      <input
        class="input"
        aria-label="Filter by name"
        placeholder="Filter, such as tool"
        value={filter.value}
        onInput={({ currentTarget }) => (filter.value = currentTarget.value)}
      />
      {frames.length > SHOWN && <p class="soft small">{frames.length - SHOWN} earlier ones are left out.</p>}
      <ol>
        {frames.slice(-SHOWN).map(({ id, event, data }) => (
          <li key={`${id} ${event}`}>
            <span class="soft number">{id}</span> <strong>{event}</strong>
            <code>{JSON.stringify(data)}</code>
          </li>
        ))}
      </ol>
    </div>
  )
}
