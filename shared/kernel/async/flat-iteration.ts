/** An iteration whose values come in the place where a generator has yielded it. */
class Inner<T> {
  readonly values: NestedValues<T, unknown>

  constructor(values: NestedValues<T, unknown>) {
    this.values = values
  }
}

/** What `inPlace` takes: any iteration, or a generator that uses `inPlace` itself. */
export type NestedValues<T, R> = AsyncIterator<T | Inner<T>, R, undefined>

/** A generator for a `FlatIteration`. It writes `yield* inPlace(values)` in place of `yield* values`. */
export type FlatGenerator<T, R> = AsyncGenerator<T | Inner<T>, R, undefined>

/** Returns what `values` returns. */
export function* inPlace<T, R>(values: NestedValues<T, R>): Generator<Inner<T>, R, unknown> {
  return (yield new Inner(values)) as R
}

type Step<T, R> = IteratorResult<T, R | undefined>
type AnyStep<T> = IteratorResult<T | Inner<T>, unknown>
type Open<T> = AsyncIterator<T | Inner<T>, unknown, unknown>

/**
 * The values of a generator, and of the iterations that it yields with `inPlace`, for one reader who takes one value after the other. Values, results and errors pass as with
 * `yield*`, of which each level makes three promises for each value. Here a value makes one, because only the innermost iteration is asked for it.
 */
export class FlatIteration<T, R> implements AsyncIterableIterator<T, R | undefined, undefined> {
  /** The generator and the iterations that it waits for, the innermost last. */
  readonly #open: Open<T>[]
  #pending: Promise<unknown> | undefined

  constructor(generator: FlatGenerator<T, R>) {
    this.#open = [generator]
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<Step<T, R>> {
    const inner = this.#open.at(-1)
    const step = inner ? this.#follow(inner.next()) : Promise.resolve(END)
    this.#pending = step
    return step
  }

  /** Leaves the innermost iteration first, when it has answered the last call. */
  return(): Promise<Step<T, R>> {
    return this.#pending ? this.#pending.then(this.#leave, this.#leave) : this.#leave()
  }

  #follow(step: Promise<AnyStep<T>>): Promise<Step<T, R>> {
    return step.then(this.#take, this.#fail)
  }

  readonly #take = (step: AnyStep<T>): Step<T, R> | Promise<Step<T, R>> => {
    if (!step.done && !(step.value instanceof Inner)) return step as Step<T, R>
    if (!step.done) this.#open.push((step.value as Inner<T>).values)
    else this.#open.pop()
    const inner = this.#open.at(-1)
    return inner ? this.#follow(inner.next(step.done ? step.value : undefined)) : (step as Step<T, R>)
  }

  readonly #fail = (cause: unknown): Promise<Step<T, R>> => {
    this.#open.pop()
    const outer = this.#open.at(-1)
    return outer?.throw ? this.#follow(outer.throw(cause)) : Promise.reject(cause)
  }

  readonly #leave = (): Promise<Step<T, R>> => {
    const inner = this.#open.at(-1)
    if (!inner) return Promise.resolve(END)
    const left: Promise<AnyStep<T>> = inner.return?.() ?? Promise.resolve(END)
    return left.then(this.#leaveOuter, this.#fail)
  }

  readonly #leaveOuter = (step: AnyStep<T>): Step<T, R> | Promise<Step<T, R>> => {
    if (!step.done) return this.#take(step) // A `finally` yields.
    this.#open.pop()
    return this.#leave()
  }
}

const END = { done: true, value: undefined } as const
