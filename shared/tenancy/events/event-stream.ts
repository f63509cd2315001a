import { PullIterator } from '../../kernel/async/pull-iterator.ts'
import { resetFrame } from './event-text.ts'
import type { EventPosition, EventWatch, LoggedEvent, TenantEventType } from './port.ts'

export type EventQuery = {
  /** The last event that the reader has; left out, the stream begins with the next event. */
  after?: EventPosition | undefined
  /** All types if left out. */
  types?: ReadonlySet<TenantEventType> | undefined
}

type Text = { text: string; lastSeq: number }

/** The log cannot be read at the moment; it is read again after the next addition. */
const NONE_YET: readonly LoggedEvent[] = []

/** Streams have no numbers like those of a run. */
const NO_NUMBER = 0

/** One reader's stream of a tenant's events as SSE frames (D16a). It has no end of its own: it ends when its reader or its process does. */
export class EventStream extends PullIterator<Text> {
  readonly #watch: EventWatch
  readonly #types: ReadonlySet<TenantEventType> | undefined
  readonly #onClosed: () => void
  #at: EventPosition
  #wake: (() => void) | undefined

  constructor(watch: EventWatch, { after = watch.end, types }: EventQuery, onClosed: () => void = () => {}) {
    super()
    this.#watch = watch
    this.#onClosed = onClosed
    this.#types = types
    this.#at = after
    watch.subscribe(() => this.#wake?.())
  }

  protected override async pull(): Promise<Text | undefined> {
    while (!this.isStopped) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      const events = await this.#watch.read(this.#at).catch(() => NONE_YET)
      if (!events) return this.#reset()
      this.#at = events.at(-1)?.position ?? this.#at
      const wanted = events.filter(({ type }) => this.#types?.has(type) ?? true)
      if (wanted.length > 0) return textOf(wanted)
      if (events.length === 0) await woken
    }
    return undefined
  }

  protected override stop(): void {
    this.#watch.close()
    this.#onClosed()
    this.#wake?.()
  }

  /** Continues at the end of the log, because the reader's next events are gone (D16c). */
  #reset(): Text {
    this.#at = this.#watch.newest
    return { text: resetFrame(this.#at), lastSeq: NO_NUMBER }
  }
}

function textOf(events: readonly LoggedEvent[]): Text {
  const text = events.length === 1 ? events[0]?.frame : events.map(({ frame }) => frame).join('')
  return { text: text ?? '', lastSeq: NO_NUMBER }
}
