import { signal } from '@preact/signals'
import type { RunEvent } from '../../../../shared/client/api.ts'
import { RunFailed } from '../../../../shared/client/errors.ts'
import type { RunStream } from '../../../../shared/client/run/run-stream.ts'
import { reduceRun } from '../../../../shared/client/view/reduce-run.ts'
import { EMPTY_RUN, type RunView, type SteerBlock } from '../../../../shared/client/view/run-view.ts'
import { announce } from '../../base/announce.ts'

/** The most events that are shown at once: more would block the page. */
const EVENTS_PER_FRAME = 250
/** The most events that are read at once, for the same reason: many may arrive together. */
const EVENTS_PER_READ = 100
/** The raw events that the drawer keeps. */
const MOST_FRAMES = 5_000
/** A hidden tab has no animation frames; it follows the run with a timer instead. */
const HIDDEN_MS = 300

/** A followed run. Its events are collected, and shown once per animation frame. */
export class LiveRun {
  readonly view = signal<RunView>(EMPTY_RUN)
  /** Why the run is no longer followed, if its own events do not contain the reason. */
  readonly problem = signal<Error | undefined>(undefined)
  /** Steering texts sent from this page. The model may not have read them yet. */
  readonly told = signal<readonly SteerBlock[]>([])
  /** The tokens of the newest turn, which are the present size of the context. */
  readonly context = signal(0)
  readonly firstTokenMs = signal<number | undefined>(undefined)
  readonly frames: RunEvent[] = []
  readonly startedAt = performance.now()
  readonly #stream: RunStream
  readonly #onEvent: (event: RunEvent) => unknown
  readonly #isReplay: boolean
  #waiting: RunEvent[] = []
  #isScheduled = false

  /** Replayed events come at once, so their times say nothing of durations. */
  constructor(stream: RunStream, onEvent: (event: RunEvent) => unknown, isReplay = false) {
    this.#stream = stream
    this.#onEvent = onEvent
    this.#isReplay = isReplay
  }

  get id(): string | undefined {
    return this.#stream.id
  }

  /** Its id, once the server has taken it. */
  started(): Promise<string> {
    return this.#stream.started()
  }

  get isOver(): boolean {
    return this.view.value.end !== undefined || this.problem.value !== undefined
  }

  /** Reads to the end. Never rejects. */
  async follow(): Promise<void> {
    try {
      let read = 0
      for await (const event of this.#stream) {
        this.#take(event)
        if (++read % EVENTS_PER_READ === 0 && !document.hidden) await new Promise((resolve) => setTimeout(resolve))
      }
    } catch (cause) {
      if (!(cause instanceof RunFailed)) this.problem.value = cause instanceof Error ? cause : new Error(String(cause))
    }
    await this.#shown()
  }

  /** Announces the end of the run to screen readers. */
  announceEnd(): void {
    announce(this.view.peek().end?.event === 'error' ? 'The run has failed' : 'The run has ended')
  }

  /** Resolves when all events are shown. */
  async #shown(): Promise<void> {
    while (this.#waiting.length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  }

  #take(event: RunEvent): void {
    this.#onEvent(event)
    this.frames.push(event)
    if (this.frames.length > MOST_FRAMES) this.frames.shift()
    this.#waiting.push(event)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const show = () => {
      this.#isScheduled = false
      this.#flush(EVENTS_PER_FRAME)
      if (this.#waiting.length > 0) this.#schedule()
    }
    if (document.hidden) setTimeout(show, HIDDEN_MS)
    else requestAnimationFrame(show)
  }

  #flush(most: number): void {
    const now = this.#isReplay ? undefined : Date.now()
    const events = this.#waiting.splice(0, most)
    let view = this.view.peek()
    for (const event of events) {
      view = reduceRun(view, event, now)
      if (event.event === 'turn_end') this.context.value = event.data.input_tokens + event.data.output_tokens
      if (event.event === 'text_delta' || event.event === 'thinking_delta' || event.event === 'tool_use')
        this.firstTokenMs.value ??= performance.now() - this.startedAt
    }
    this.view.value = view
  }
}
