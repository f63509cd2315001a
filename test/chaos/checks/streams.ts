import {
  type Closed,
  type Entry,
  type Frame,
  isGatewayMade,
  type Killed,
  type Opened,
  ofKind,
  type Violation,
} from '../history.ts'
import type { Limits } from '../limits.ts'
import { type Stream, streamsOf } from './stream.ts'

/** `stream-without-end`, `stream-altered` and `events-after-end` for each stream: it ends with one terminal event and has no hole, duplicate or other order. */
export function checkStreams(history: readonly Entry[], limits: Limits): Violation[] {
  const kills = ofKind(history, 'killed')
  return [...streamsOf(history).values()].flatMap((stream) => [
    ...checkNumbers(stream),
    ...checkTerminal(stream),
    ...checkEnd(stream, kills, limits),
    ...checkLastBytes(stream),
  ])
}

function checkNumbers({ name, opened, frames }: Stream): Violation[] {
  const found: Violation[] = []
  let last = opened?.after ?? 0
  for (const [at, frame] of frames.entries()) {
    const wanted = isGatewayMade(frame) ? last : last + 1
    if (frame.seq !== wanted) {
      const what = `${name}: ${wordFor(frame.seq, wanted)} ${frame.seq} after ${last}`
      found.push({ rule: 'stream-altered', what, evidence: frames.slice(Math.max(0, at - 1), at + 1) })
    }
    last = frame.lastSeq ?? frame.seq
  }
  return found
}

function wordFor(seq: number, wanted: number): string {
  if (seq > wanted) return 'a hole:'
  return seq === wanted - 1 ? 'a duplicate:' : 'out of order:'
}

function checkTerminal({ name, frames }: Stream): Violation[] {
  const at = frames.findIndex(({ isTerminal }) => isTerminal)
  if (at < 0 || at === frames.length - 1) return []
  return [{ rule: 'events-after-end', what: `${name}: a frame after the terminal event`, evidence: frames.slice(at) }]
}

function checkEnd({ name, opened, frames, closed }: Stream, kills: readonly Killed[], limits: Limits): Violation[] {
  const terminal = frames.find(({ isTerminal }) => isTerminal)
  const say = (what: string): Violation[] => [
    {
      rule: 'stream-without-end',
      what: `${name}: ${what}`,
      evidence: [opened, frames.at(-1), closed].filter((entry) => !!entry),
    },
  ]
  if (terminal) return opened && isLate(terminal, closed, limits) ? say('not closed after its terminal event') : []
  if (!closed) return say('no terminal event at the end of the history')
  if (closed.how === 'ended') return say('closed without a terminal event')
  if (closed.how === 'left') return []
  const isExcused = kills.some((kill) => excuses(kill, closed, limits) && hasCut(kill, opened))
  return isExcused ? [] : say('reset, and no process had been killed')
}

/** Only SIGKILL explains a broken connection: a process that ends on SIGTERM closes its streams. */
const excuses = ({ t, signal }: Killed, closed: Closed, { slackMs, termMs }: Limits) =>
  signal === 'SIGKILL' && t <= closed.t + slackMs && t >= closed.t - termMs

const hasCut = ({ what }: Killed, opened: Opened | undefined) =>
  opened?.gateway === undefined || opened.gateway === what

/** A stream that the server completed holds only complete frames. */
function checkLastBytes({ name, closed }: Stream): Violation[] {
  if (closed?.how !== 'ended' || !closed.isCut) return []
  return [{ rule: 'stream-altered', what: `${name}: ends within a frame`, evidence: [closed] }]
}

const isLate = ({ t }: Frame, closed: { t: number } | undefined, { closeMs }: Limits) =>
  closed === undefined || closed.t > t + closeMs
