import { setTimeout as sleep } from 'node:timers/promises'
import type { Frames } from '../../cluster/journal/frame-stream.ts'
import { renderFrame } from '../../cluster/journal/frames.ts'
import { PullIterator } from '../../kernel/async/pull-iterator.ts'
import { invalidRequest } from '../../kernel/errors.ts'
import type { FlowEvent } from '../../kernel/events.ts'
import { terminalEvent } from './execute/outcome.ts'
import type { Dispatch, DispatchOutput, TimelineEntry } from './port.ts'
import { numbersBefore } from './transitions.ts'

export type ReplayOptions = {
  /** From 0.1 to 100: the pauses between the events are divided by it. Without it all frames come at once. */
  speed?: number | undefined
  /** Number of the last frame that the reader has. */
  after?: number | undefined
  /** For a client that waits for the answer of its own run: it gets the output even when payloads are not kept. */
  isForCaller?: boolean
}

/** A frame and the time of its event, in milliseconds since 1970. */
export type TimedFrame = { text: string; seq: number; atMs: number }

const MIN_SPEED = 0.1
const MAX_SPEED = 100
/** Longer pauses are shortened to this. */
const MAX_PAUSE_MS = 60_000

/** Throws `invalid_request` for a speed outside 0.1 to 100. */
export function assertSpeed(speed: number | undefined): void {
  if (speed === undefined || (speed >= MIN_SPEED && speed <= MAX_SPEED)) return
  throw invalidRequest(`speed must be a number from ${MIN_SPEED} to ${MAX_SPEED}; leave it out for no pauses`, {
    param: '/speed',
  })
}

/** The frames of an execution, numbered from 1 (D6.8), or like its stream after it was repeated (D34.2). */
export function framesOf(dispatch: Dispatch, output: DispatchOutput | undefined): TimedFrame[] {
  const before = numbersBefore(dispatch)
  return eventsOf(dispatch, output).map((event, i) => {
    const seq = before + i + 1
    return { text: renderFrame(seq, event), seq, atMs: Date.parse(event.at) }
  })
}

/**
 * The events that can be made from the record. Turns are stored at the end of the execution: before that, and if they are not kept, only
 * `started` is known. An execution that no executor has begun has only its error, or nothing yet.
 */
function eventsOf(dispatch: Dispatch, output: DispatchOutput | undefined): FlowEvent[] {
  const stored = (output?.timeline ?? []).map(toEvent)
  const events = stored.length > 0 || dispatch.executor === null ? stored : [startOf(dispatch)]
  const terminal = terminalOf(dispatch, output)
  return terminal ? [...events, terminal] : events
}

const toEvent = ({ event, at, data }: TimelineEntry): FlowEvent => ({ ...data, at, type: event }) as FlowEvent

const startOf = ({ trace_id, flow, provider_instance, model, started_at: at }: Dispatch): FlowEvent => ({
  type: 'started',
  trace_id,
  flow_id: flow.name,
  flow_version: flow.version,
  provider_instance,
  model,
  at,
})

function terminalOf(dispatch: Dispatch, output: DispatchOutput | undefined): FlowEvent | undefined {
  const { status, error, ended_at } = dispatch
  const isOver = ended_at !== null && (error || status === 'ok' || status === 'invalid_output')
  return isOver ? terminalEvent(dispatch, output) : undefined
}

/** The pause before a frame that followed the one before it after `gapMs`. */
export const pauseOf = (gapMs: number, speed: number): number => Math.max(0, Math.min(MAX_PAUSE_MS, gapMs / speed))

type Played = ReplayOptions & { hasEnded?: boolean }

/** Plays frames to one reader. */
export class ReplayStream extends PullIterator<Frames> {
  readonly #frames: TimedFrame[]
  readonly #speed: number | undefined
  readonly #left = new AbortController()
  #playedMs: number | undefined
  /** The execution has ended, and the reader has its last event. */
  readonly isOver: boolean

  constructor(frames: readonly TimedFrame[], { speed, after = 0, hasEnded = false }: Played) {
    super()
    this.#frames = frames.filter(({ seq }) => seq > after)
    this.isOver = hasEnded && this.#frames.length === 0
    this.#speed = speed
  }

  protected override async pull(): Promise<Frames | undefined> {
    const [frame] = this.#frames
    if (frame && this.#speed !== undefined) await this.#pauseBefore(frame, this.#speed)
    const played = this.#frames.splice(0, this.#speed === undefined ? Infinity : 1)
    const last = played.at(-1)
    if (!last) return undefined
    this.#playedMs = last.atMs
    return { text: played.map(({ text }) => text).join(''), lastSeq: last.seq }
  }

  protected override stop(): void {
    this.#frames.length = 0
    this.#left.abort()
  }

  async #pauseBefore({ atMs }: TimedFrame, speed: number): Promise<void> {
    const pauseMs = pauseOf(atMs - (this.#playedMs ?? atMs), speed)
    if (pauseMs < 1) return
    await sleep(pauseMs, undefined, { signal: this.#left.signal, ref: false }).catch(() => {}) // Rejects when the reader has left.
  }
}
