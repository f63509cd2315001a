import { isTerminal, type RunErrorCode, type RunEvent } from '../../../../shared/kernel/events.ts'
import { OpenAsks } from '../../../../shared/work/runs/open-asks.ts'
import type { Numbered } from '../../streams/run-events.ts'
import { OpenCalls } from './open-calls.ts'
import type { Part, Projection } from './projection.ts'

/** One response: the events of its run, in another format, from its beginning to a pause or to the end of the run. */
export class ProjectedRun<Chunk, Event extends RunEvent> {
  readonly #projection: Projection<Chunk, Event>
  readonly #known: ReadonlySet<string>
  readonly #answered: ReadonlySet<string>
  readonly #partials: readonly number[] | undefined
  readonly #passed: number
  readonly #silentUntil: number | undefined
  readonly #calls = new OpenCalls()
  readonly #asks = new OpenAsks()
  /** The permission requests at which earlier responses ended. */
  readonly #earlier = new Set<string>()
  #part = 1
  #isSkipping: boolean
  #pausesLeft: number
  #isOver = false

  constructor(
    projection: Projection<Chunk, Event>,
    { known = new Set(), answered = known, pauses = 0, partials, passed = 0, silentUntil }: Part = {},
  ) {
    this.#projection = projection
    this.#known = known
    this.#answered = answered
    this.#partials = partials
    this.#passed = passed
    this.#silentUntil = silentUntil
    this.#pausesLeft = pauses
    this.#isSkipping = known.size > 0 || pauses > 0
  }

  /** Whether the response is complete. */
  get isOver(): boolean {
    return this.#isOver
  }

  begin(): Chunk[] {
    return this.#projection.begin()
  }

  take(numbered: Numbered<Event>): Chunk[] {
    if (this.#isOver) return []
    const { seq, event } = numbered
    if (this.#silentUntil !== undefined && isTerminal(event)) this.#projection.restart?.()
    const resolved = endsRun(event) ? this.#resolve(seq) : []
    this.#asks.note(event)
    const isChange = this.#calls.take(event)
    const chunks = [...resolved, ...this.#projection.take(numbered, this.#calls)]
    if (isTerminal(event)) {
      this.#isOver = true
      return chunks
    }
    if (!this.#projection.pause) return chunks
    const isPause = isChange && this.#calls.isAtRest && this.#endsPart
    if (this.#silentUntil !== undefined) return seq >= this.#silentUntil ? this.#pauseAlone() : []
    if (this.#isSkipping) {
      if (isPause) this.#skipPause()
      return []
    }
    return isPause && seq >= this.#passed && this.#waitsForPeople ? this.#pause(chunks) : chunks
  }

  /**
   * Whether the run waits for people. When a client sends several answers together, the run may rest between the first and the
   * last of them; that does not count.
   */
  get #waitsForPeople(): boolean {
    return [...this.#calls.pending.keys()].some((id) => !this.#answered.has(id))
  }

  /**
   * Whether this pause ends the response. Formats that count responses need the same ones each time the run is read, no matter
   * which response answered the requests.
   */
  get #endsPart(): boolean {
    if (!this.#partials || this.#partials.includes(this.#part)) return true
    return [...this.#calls.pending.keys()].some((id) => !this.#earlier.has(id))
  }

  #pauseAlone(): Chunk[] {
    if (!this.#calls.isAtRest) return []
    this.#projection.restart?.()
    return this.#pause([])
  }

  #pause(chunks: Chunk[]): Chunk[] {
    this.#isOver = true
    return [...chunks, ...(this.#projection.pause?.(this.#calls) ?? [])]
  }

  /** Closes the permission requests that a run leaves open when its worker died: no reply to them is accepted (D37.1). */
  #resolve(seq: number): Chunk[] {
    const { pending } = this.#calls
    const open = this.#asks.take().filter((event) => 'id' in event && pending.has(String(event.id)))
    return open.flatMap((event) => {
      this.#calls.take(event)
      return this.#projection.take({ seq, event: event as Event }, this.#calls)
    })
  }

  #skipPause(): void {
    this.#pausesLeft--
    this.#part++
    for (const id of this.#calls.pending.keys()) this.#earlier.add(id)
    const isBehindKnown = [...this.#known].every((id) => this.#calls.askedFor(id))
    if (!isBehindKnown || this.#pausesLeft > 0) return
    this.#isSkipping = false
    this.#projection.restart?.()
  }
}

/** The error codes that end one reader's stream while the run continues. */
const GOES_ON: ReadonlySet<string> = new Set<RunErrorCode>([
  ...(['worker_draining', 'relay_unavailable', 'stream_gap', 'slow_consumer'] as const),
])

const endsRun = (event: RunEvent): boolean => isTerminal(event) && !(event.type === 'error' && GOES_ON.has(event.code))
