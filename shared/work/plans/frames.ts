import { renderFrame } from '../../cluster/journal/frames.ts'
import type { Frames } from '../../cluster/port.ts'
import type { PlanEvent } from './port.ts'

/** The events after number `after` as one value; `undefined` when there is none. */
export function renderEvents(events: readonly PlanEvent[], after: number): Frames | undefined {
  const missing = events.slice(after)
  if (missing.length === 0) return undefined
  return { text: missing.map((event, i) => renderFrame(after + i + 1, event)).join(''), lastSeq: events.length }
}

export type UnreadFrames = {
  /** The frames that the reader does not have yet; `undefined` when it has everything. */
  frames: Frames | undefined
  /** These frames end the plan, or only the work of one executor on it. */
  end: 'plan' | 'executor' | undefined
}

const HEAD = /^id: (\d+)\nevent: (\w+)\n/

/**
 * Reads frames of a plan's run after number `after`. Leaves out those before it, since a run that was queued is read from its start,
 * and the `error` of an executor that stopped before the plan had ended.
 */
export function unreadFrames({ text, lastSeq }: Frames, after: number): UnreadFrames {
  const unread: string[] = []
  let end: UnreadFrames['end']
  // An event is one line of JSON, so that only frames end with a blank line.
  for (const frame of textOf(text).split(/(?<=\n\n)/)) {
    const [, id, event] = HEAD.exec(frame) ?? []
    if (event === 'plan_ended') end = 'plan'
    if (event === 'error') end = 'executor'
    else if (Number(id) > after) unread.push(frame)
  }
  const last = end === 'executor' ? lastSeq - 1 : lastSeq
  return { frames: unread.length > 0 ? { text: unread.join(''), lastSeq: last } : undefined, end }
}

/** The terminal frame of one reader's failure with the number of the last frame that this reader has (D4.2). */
export const renumbered = ({ text }: Frames, lastSeq: number): string =>
  textOf(text).replace(/^id: \d+/, `id: ${lastSeq}`)

const textOf = (text: Frames['text']): string => (typeof text === 'string' ? text : Buffer.from(text).toString())
