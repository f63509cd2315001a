import { type Entry, type Killed, type Owned, ofKind, type Violation } from '../history.ts'
import type { Limits } from '../limits.ts'
import { type Stream, streamsOf } from './stream.ts'

/** `stream-without-end`: the streams of a worker end in time when it is killed or frozen for longer than the eviction takes. */
export function checkDeaths(history: readonly Entry[], limits: Limits): Violation[] {
  const streams = [...streamsOf(history).values()]
  const owners = ofKind(history, 'owned')
  return deathsIn(ofKind(history, 'killed'), limits).flatMap((death) => {
    const lost = new Map(ownedBy(owners, death).map((owned) => [owned.run, owned]))
    return streams.flatMap((stream) => {
      const owned = lost.get(stream.run)
      return owned && isLive(stream, death) ? checkStream(stream, { death, owned }, limits) : []
    })
  })
}

function deathsIn(kills: readonly Killed[], { deadMs }: Limits): Killed[] {
  return kills.filter(({ what, signal, t }) => {
    if (signal === 'SIGKILL') return true
    const isThawed = (other: Killed) => other.signal === 'SIGCONT' && other.t > t && other.t <= t + deadMs
    return signal === 'SIGSTOP' && !kills.some((other) => other.what === what && isThawed(other))
  })
}

/** The runs that the process executed when it died: those whose last owner it was. */
function ownedBy(owners: readonly Owned[], { what, t }: Killed): Owned[] {
  const last = new Map(owners.filter((owned) => owned.t <= t).map((owned) => [owned.run, owned]))
  return [...last.values()].filter(({ process }) => process === what)
}

function isLive({ opened, frames, closed }: Stream, { t }: Killed): boolean {
  const from = opened?.t ?? frames[0]?.t ?? t
  const to = frames.find(({ isTerminal }) => isTerminal)?.t ?? closed?.t ?? Number.POSITIVE_INFINITY
  return from <= t && t < to
}

function checkStream(
  { name, frames, closed }: Stream,
  why: { death: Killed; owned: Owned },
  { termMs }: Limits,
): Violation[] {
  const terminal = frames.find(({ isTerminal }) => isTerminal)
  const end = terminal ?? (closed?.how === 'ended' ? undefined : closed)
  const { death, owned } = why
  if (end && end.t <= death.t + termMs) return []
  const when = end ? `only ${Math.round(end.t - death.t)} ms after` : 'never after'
  return [
    {
      rule: 'stream-without-end',
      what: `${name}: ended ${when} its worker's death`,
      evidence: [owned, death, ...(end ? [end] : [])],
    },
  ]
}
