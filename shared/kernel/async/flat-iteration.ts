import { END } from './pull-iterator.ts'

/** An iteration whose values come in the place where a generator yields it. `N` is what it returns. */
class Inner<T, N> {
  readonly values: Nested<T, N>

  constructor(values: Nested<T, N>) {
    this.values = values
  }
}

/** Any iteration, or a generator that yields with `inPlace`, directly or through `yield*`. */
export type Nested<T, N> = AsyncIterator<T | Inner<T, unknown>, N, never>

/** A generator that writes `yield inPlace(values)` in place of `yield* values`. */
export type FlatGenerator<T, R, N> = AsyncGenerator<T | Inner<T, N>, R, N>

/** A generator that passes on others with `yield*`, which may yield with `inPlace`. */
export type PassingGenerator<T, R> = AsyncGenerator<T | Inner<T, unknown>, R, never>

/** The value of the `yield` is what `values` return. */
export const inPlace = <T, N>(values: Nested<T, N>): Inner<T, N> => new Inner(values)

type Step<T, R> = IteratorResult<T, R | undefined>
type AnyStep<T> = IteratorResult<T | Inner<T, unknown>, unknown>
type Open<T> = AsyncIterator<T | Inner<T, unknown>, unknown, unknown>

/**
 * The values of a generator, and of the iterations that it yields with `inPlace`, for one reader who takes one value after the other. Values, results and errors pass as with
 * `yield*`, of which each level makes three promises for each value. Here a value makes one, because only the innermost iteration is asked for it. To begin and to end one
 * makes about ten: it is for iterations with many values.
 */
export class FlatIteration<T, R> implements AsyncIterableIterator<T, R | undefined, undefined> {
  /** The generator and the iterations that it waits for, the innermost last. */
  readonly #open: Open<T>[]
  #pending: Promise<unknown> | undefined

  constructor(generator: Nested<T, R>) {
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
    const { done, value } = step
    if (!done && value instanceof Inner) return this.#enter(value)
    if (!done) return step as Step<T, R>
    this.#open.pop()
    const outer = this.#open.at(-1)
    return outer ? this.#follow(outer.next(value)) : (step as Step<T, R>)
  }

  #enter({ values }: Inner<T, unknown>): Promise<Step<T, R>> {
    this.#open.push(values)
    return this.#follow(values.next())
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
