import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { TenantEvent } from '../../../shared/client/api.ts'
import { pace } from './engine.ts'
import { onEvent } from './live.ts'

/** Data that is read from the API. The old data stays while it is read again. */
export type Loaded<T> = { data: T | undefined; error: Error | undefined; isLoading: boolean }

export type Resource<T> = { state: Signal<Loaded<T>>; reload(): void }

/** Whether an event makes the resource be read again. A number: after this many milliseconds, because the server stores the data after the event. */
export type Concerns = (event: TenantEvent) => boolean | number

/** The least time between two reads for events: a busy tenant must not use up the caller's requests. */
const PAUSE_MS = 2_500
const SOON_MS = 150

/** Reads something now, and again when `concerns` says so of an event. */
export class LiveResource<T> implements Resource<T> {
  readonly state = signal<Loaded<T>>({ data: undefined, error: undefined, isLoading: true })
  readonly #load: () => Promise<T>
  readonly #concerns: Concerns
  #timer: ReturnType<typeof setTimeout> | undefined
  #isWanted = false
  #lastAt = 0
  /** The time at which the data of all events so far is stored. */
  #storedAt = 0
  #turn = 0

  constructor(load: () => Promise<T>, concerns: Concerns = () => false) {
    this.#load = load
    this.#concerns = concerns
  }

  /** Reads for the first time, and listens for events until the returned function is called. */
  readonly watch = (): (() => void) => {
    this.reload()
    const stop = onEvent((event) => {
      const wanted = event.event === 'reset' || this.#concerns(event)
      if (typeof wanted === 'number') this.#wantLater(wanted)
      else if (wanted) this.want()
    })
    const onVisible = () => this.#isWanted && this.want()
    document.addEventListener('visibilitychange', onVisible)
    return () => {
      stop()
      document.removeEventListener('visibilitychange', onVisible)
      clearTimeout(this.#timer)
      this.#timer = undefined
      this.#turn++
    }
  }

  readonly reload = (): void => {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isWanted = false
    this.#lastAt = performance.now()
    void this.#read(++this.#turn)
    if (this.#storedAt > this.#lastAt + SOON_MS) this.want(this.#storedAt - this.#lastAt)
  }

  /** Shows a value that is already known, such as the answer to a change. */
  readonly set = (data: T): void => {
    this.#turn++
    this.state.value = { data, error: undefined, isLoading: false }
  }

  /** Reads soon, because of an event. A hidden tab reads when it becomes visible again. */
  readonly want = (afterMs = SOON_MS): void => {
    this.#isWanted = true
    if (this.#timer !== undefined || document.hidden) return
    const pauseMs = Math.max(afterMs, PAUSE_MS - (performance.now() - this.#lastAt))
    this.#timer = setTimeout(this.#inTurn, pauseMs)
  }

  /** A reading that comes before is followed by another. */
  #wantLater(ms: number): void {
    this.#storedAt = performance.now() + ms
    this.want(ms)
  }

  readonly #inTurn = (): void => {
    const waitMs = pace().turnMs(performance.now())
    if (waitMs === 0) this.reload()
    else this.#timer = setTimeout(this.#inTurn, waitMs)
  }

  async #read(turn: number): Promise<void> {
    this.state.value = { ...this.state.peek(), isLoading: true }
    const found = await this.#load().then(
      (data) => ({ data, error: undefined }),
      (cause: unknown) => ({
        data: this.state.peek().data,
        error: cause instanceof Error ? cause : new Error(String(cause)),
      }),
    )
    if (turn === this.#turn) this.state.value = { ...found, isLoading: false }
  }
}

/** A resource of a component: read when `key` changes, and again for the events that concern it. */
export function useResource<T>(key: string, load: () => Promise<T>, concerns?: Concerns): LiveResource<T> {
  // `key` represents all inputs of `load`.
  const resource = useMemo(() => new LiveResource(load, concerns), [key])
  useEffect(resource.watch, [resource])
  return resource
}
