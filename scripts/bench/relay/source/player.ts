import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import { DONE, PreparedEvents, TURN_START } from './prepared-events.ts'
import type { Script } from './script.ts'

type Flood = Extract<Script, { mode: 'flood' }>

/** Receives a run's events: a journal, or a baseline's replacement for it. */
export type Sink = {
  append(event: AgentEvent): void
  readonly isBackpressured: boolean
  /** Resolves when it is not backpressured any more, or the signal is aborted. */
  waitForDrain(signal: AbortSignal): Promise<void>
}

type Source = { sink: Sink; events: PreparedEvents; perTurn: number; left: number; signal: AbortSignal }

/** Plays synthetic runs. All unpaced runs share one loop, so that the loop costs little. */
export class Player {
  readonly #floods = new Set<Source>()
  #isTurning = false

  play(script: Script, sink: Sink, signal: AbortSignal): void {
    if (script.mode === 'flood') return this.#flood(script, sink, signal)
    if (script.mode === 'paced') return pace(script.everyMs, sink, signal)
    // As the engine does: after the start of the run was answered, and in the same loop turn.
    queueMicrotask(() => sink.append(TURN_START))
    if (script.mode === 'once') setImmediate(() => sink.append(DONE))
  }

  #flood({ perTurn, startAt, count = Infinity }: Flood, sink: Sink, signal: AbortSignal): void {
    const source = { sink, events: new PreparedEvents(), perTurn, left: count - 1, signal }
    sink.append(source.events.next())
    const timer = setTimeout(() => this.#open(source), Math.max(0, startAt - Date.now()))
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      this.#floods.delete(source)
    })
  }

  #open(source: Source): void {
    if (source.signal.aborted) return
    this.#floods.add(source)
    this.#turnSoon()
  }

  #turnSoon(): void {
    if (this.#isTurning || this.#floods.size === 0) return
    this.#isTurning = true
    setImmediate(() => {
      this.#isTurning = false
      for (const source of this.#floods) this.#feed(source)
      this.#turnSoon()
    })
  }

  #feed(source: Source): void {
    const { sink, events, perTurn } = source
    for (let i = 0; i < perTurn && source.left > 0; i++) {
      if (sink.isBackpressured) return this.#rest(source)
      sink.append(events.next())
      source.left--
    }
    if (source.left > 0) return
    this.#floods.delete(source)
    sink.append(DONE)
  }

  #rest(source: Source): void {
    this.#floods.delete(source)
    void source.sink.waitForDrain(source.signal).then(() => this.#open(source))
  }
}

function pace(everyMs: number, sink: Sink, signal: AbortSignal): void {
  const events = new PreparedEvents()
  const timer = setInterval(() => sink.append(events.stamped()), everyMs)
  signal.addEventListener('abort', () => clearInterval(timer))
}
