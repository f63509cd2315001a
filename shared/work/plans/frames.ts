import type { FollowedRun, Read } from '../../cluster/following/followed-run.ts'
import type { Frames } from '../../cluster/journal/frame-stream.ts'
import { renderFrame } from '../../cluster/journal/frames.ts'
import { type WatchOptions, watch } from '../queue/watch.ts'
import { eventsOf } from './events-of.ts'
import { isEnded } from './plan-runs.ts'
import type { PlanEvent, PlanRecord } from './port.ts'

/** `follow`: from the executor that runs the plan or will run it. */
export type WatchedPlan = Pick<WatchOptions, 'after' | 'silentMs' | 'retryMs'> &
  Required<Pick<WatchOptions, 'follow'>> & { read(): Promise<PlanRecord | undefined> }

/**
 * The frames of a plan that has not ended, through as many executors as needed, until `plan_ended`. When no executor sends the end,
 * it is taken from the stored record.
 */
export const watchPlan = ({ read, ...options }: WatchedPlan): FollowedRun =>
  watch(undefined, {
    ...options,
    read: unreadFrames,
    async findEnd(lastSeq) {
      const found = await read().then(
        (plan) => ({ plan }),
        () => undefined,
      )
      if (!found || (found.plan && !isEnded(found.plan))) return undefined
      const events = found.plan ? eventsOf(found.plan) : []
      const [rest, last] = [renderEvents(events, lastSeq), events.at(-1)]
      // A lost executor has sent more events than the record has.
      const isAhead = !rest && last && lastSeq !== options.after
      return { frames: isAhead ? { text: renderFrame(lastSeq, last), lastSeq } : rest }
    },
  })

/** The events after number `after` as one value; `undefined` when there is none. */
export function renderEvents(events: readonly PlanEvent[], after: number): Frames | undefined {
  const missing = events.slice(after)
  if (missing.length === 0) return undefined
  return { text: missing.map((event, i) => renderFrame(after + i + 1, event)).join(''), lastSeq: events.length }
}

const HEAD = /^id: (\d+)\nevent: (\w+)\n/

/**
 * Reads frames of a plan's run after number `after`. Leaves out earlier frames, because a queued run is read from its start, and the
 * `error` of an executor that stopped before the plan had ended. The frame of a reader's failure gets the number of the last frame that
 * the reader has (D4.2).
 */
function unreadFrames({ text, lastSeq, failure }: Frames, after: number): Read {
  if (failure !== undefined)
    return { frames: { text: textOf(text).replace(/^id: \d+/, `id: ${after}`), lastSeq: after }, end: 'run' }
  const unread: string[] = []
  let end: Read['end']
  // An event is one line of JSON, so that only frames end with a blank line.
  for (const frame of textOf(text).split(/(?<=\n\n)/)) {
    const [, id, event] = HEAD.exec(frame) ?? []
    if (event === 'plan_ended') end = 'run'
    if (event === 'error') end = 'stream'
    else if (Number(id) > after) unread.push(frame)
  }
  const last = end === 'stream' ? lastSeq - 1 : lastSeq
  return { frames: unread.length > 0 ? { text: unread.join(''), lastSeq: last } : undefined, end }
}

const textOf = (text: Frames['text']): string => (typeof text === 'string' ? text : Buffer.from(text).toString())
