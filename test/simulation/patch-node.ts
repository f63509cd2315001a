import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import timersPromises from 'node:timers/promises'
import type { Owner, Time, Turn } from './time.ts'

/** How long a turn of the event loop takes. */
const TURN_MS = 0.01

/** Replaces the timers, clocks and random numbers of Node by those of this world. Returns the function that gives them back. */
export function patchNode(time: Time): () => void {
  const later = laterFunctions(time)
  const { promises, ...functions } = later
  const restores = [
    replace(globalThis, functions),
    replace(timers, functions),
    replace(timersPromises, promises),
    replace(performance, { now: () => time.nowMs }),
    replace(globalThis, { Date: dateOf(time) }),
    replace(Math, { random: () => time.random.next() }),
    replace(crypto, { randomUUID: () => uuidOf(time) }),
  ]
  syncBuiltinESMExports()
  return () => {
    for (const restore of restores) restore()
    syncBuiltinESMExports()
  }
}

function replace(target: object, replacements: Record<string, unknown>): () => void {
  const names = Object.keys(replacements)
  const originals = names.map((name) => Object.getOwnPropertyDescriptor(target, name))
  for (const name of names) {
    Object.defineProperty(target, name, { value: replacements[name], configurable: true, writable: true })
  }
  return () => {
    for (const [i, name] of names.entries()) {
      const original = originals[i]
      if (original) Object.defineProperty(target, name, original)
      else delete (target as Record<string, unknown>)[name]
    }
  }
}

/** A timer as Node returns it. It belongs to the process that has set it. */
class Timer {
  readonly #time: Time
  readonly #owner: Owner
  readonly #delay: () => number
  readonly #act: () => void
  readonly #repeats: boolean
  #turn: Turn | undefined

  constructor(time: Time, { delay, act, repeats }: { delay: () => number; act: () => void; repeats: boolean }) {
    this.#time = time
    this.#owner = time.current
    this.#delay = delay
    this.#act = act
    this.#repeats = repeats
    this.#schedule()
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  refresh(): this {
    this.close()
    this.#schedule()
    return this
  }

  close(): void {
    if (this.#turn) this.#time.cancel(this.#turn)
    this.#turn = undefined
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #schedule(): void {
    this.#turn = this.#time.after(this.#owner, this.#delay(), () => {
      this.#turn = undefined
      if (this.#repeats) this.#schedule()
      this.#act()
    })
  }
}

type Args = readonly unknown[]
type Callback = (...args: Args) => void
type WaitOptions = { signal?: AbortSignal }

function laterFunctions(time: Time) {
  const timer = (act: Callback, delay: () => number, args: Args, repeats = false) =>
    new Timer(time, { delay, act: () => act(...args), repeats })
  const msOf = (ms: number | undefined) => () => Math.max(1, Number.isFinite(ms) ? (ms ?? 0) : 0)
  const clear = (handle: unknown) => {
    if (handle instanceof Timer) handle.close()
  }
  const wait = <T>(delay: () => number, value: T, { signal }: WaitOptions = {}) =>
    new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(abortError(signal))
      const onAbort = () => {
        handle.close()
        if (signal) reject(abortError(signal))
      }
      const settle = () => {
        signal?.removeEventListener('abort', onAbort)
        resolve(value)
      }
      const handle = timer(settle, delay, [])
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  return {
    setTimeout: (act: Callback, ms?: number, ...args: Args) => timer(act, msOf(ms), args),
    setInterval: (act: Callback, ms?: number, ...args: Args) => timer(act, msOf(ms), args, true),
    setImmediate: (act: Callback, ...args: Args) => timer(act, () => TURN_MS, args),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
    promises: {
      setTimeout: <T>(ms?: number, value?: T, options?: WaitOptions) => wait(msOf(ms), value, options),
      setImmediate: <T>(value?: T, options?: WaitOptions) => wait(() => TURN_MS, value, options),
    },
  }
}

const abortError = ({ reason }: AbortSignal): Error =>
  Object.assign(new Error('The operation was aborted', { cause: reason }), { name: 'AbortError', code: 'ABORT_ERR' })

function dateOf(time: Time): DateConstructor {
  const Real = Date
  return class extends Real {
    constructor(...args: unknown[]) {
      super(...((args.length === 0 ? [time.wallMs()] : args) as [number]))
    }

    static override now(): number {
      return time.wallMs()
    }
  } as DateConstructor
}

function uuidOf({ random }: Time): string {
  const hex = () => random.whole(0, 0xffff).toString(16).padStart(4, '0')
  return `${hex()}${hex()}-${hex()}-4${hex().slice(1)}-a${hex().slice(1)}-${hex()}${hex()}${hex()}`
}
