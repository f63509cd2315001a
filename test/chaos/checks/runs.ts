import { type Entry, type Frame, isGatewayMade, type Produced, type Violation } from '../history.ts'

/** `stream-altered` and `events-after-end` over all streams of a run: a number has one content, and nothing follows the run's own end. */
export function checkRuns(history: readonly Entry[]): Violation[] {
  const found: Violation[] = []
  const seen = new Map<string, Frame | Produced>()
  const ends = new Map<string, Frame>()
  for (const entry of history) {
    if (entry.kind !== 'frame' && entry.kind !== 'produced') continue
    if (entry.kind === 'frame' && isGatewayMade(entry)) continue
    const seq = numberOf(entry)
    const place = `${entry.run} ${seq}`
    const first = seen.get(place)
    if (first === undefined) seen.set(place, entry)
    else if (!isSame(first, entry))
      found.push({
        rule: 'stream-altered',
        what: `${entry.run}: two different frames ${seq}`,
        evidence: [first, entry],
      })
    const end = ends.get(entry.run)
    if (entry.kind === 'frame' && entry.isTerminal && !(end && end.seq <= entry.seq)) ends.set(entry.run, entry)
  }
  return [...found, ...checkAfterEnds(seen.values(), ends)]
}

const numberOf = (entry: Frame | Produced) => (entry.kind === 'frame' && entry.lastSeq) || entry.seq

const isSame = (a: Frame | Produced, b: Frame | Produced) =>
  a.event === b.event && (a.digest === undefined || b.digest === undefined || a.digest === b.digest)

/** A frame after the end in the same stream is reported by the check of that stream. */
function checkAfterEnds(seen: Iterable<Frame | Produced>, ends: ReadonlyMap<string, Frame>): Violation[] {
  return [...seen].flatMap((entry): Violation[] => {
    const end = ends.get(entry.run)
    if (end === undefined || numberOf(entry) <= numberOf(end)) return []
    if (entry.kind === 'frame' && entry.stream === end.stream) return []
    return [
      {
        rule: 'events-after-end',
        what: `${entry.run}: a frame after the run's terminal event`,
        evidence: [end, entry],
      },
    ]
  })
}
