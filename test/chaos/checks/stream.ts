import type { Closed, Entry, Frame, Opened } from '../history.ts'

/** The part of a run that one connection received. */
export type Stream = { name: string; run: string; opened?: Opened; frames: Frame[]; closed?: Closed }

/** The streams by connection name, or by run where the run had only one. */
export function streamsOf(history: readonly Entry[]): Map<string, Stream> {
  const streams = new Map<string, Stream>()
  for (const entry of history) {
    if (entry.kind !== 'opened' && entry.kind !== 'frame' && entry.kind !== 'closed') continue
    const name = entry.stream ?? entry.run
    const stream = streams.get(name) ?? { name, run: entry.run, frames: [] }
    streams.set(name, stream)
    if (entry.kind === 'opened') stream.opened = entry
    else if (entry.kind === 'closed') stream.closed = entry
    else stream.frames.push(entry)
  }
  return streams
}
