import { storeUnavailable } from '../unavailable.ts'

/** Runs operations of one kind with one command. Returns their results in order; a rejection fails all of them. */
export type RunTogether<Operation, Result> = (
  operations: readonly Operation[],
  waitedMs: number,
) => Promise<readonly PromiseSettledResult<Result>[]>

type Waiting<Operation, Result> = {
  operation: Operation
  bytes: number
  since: number
  resolve(result: Result): void
  reject(cause: unknown): void
}

/** A command with more operations takes long at the database. */
const MAX_TOGETHER = 100
const MAX_TOGETHER_BYTES = 4 * 1024 * 1024
/** More could not be answered before the deadline. */
const MAX_WAITING = 220
/** Other operations wait no longer than this for a slow command. */
const SLOW_MS = 100

/**
 * Operations of one kind. An operation that comes while no command is running is sent at once; those that come meanwhile wait for its
 * end and are sent together with the next command. So nothing waits for a timer, and under load each operation costs less.
 */
export class Group<Operation, Result> {
  readonly #run: RunTogether<Operation, Result>
  #waiting: Waiting<Operation, Result>[] = []
  #underWay = 0
  #slow: NodeJS.Timeout | undefined

  constructor(run: RunTogether<Operation, Result>) {
    this.#run = run
  }

  /** `bytes` is the length of the operation's command. Throws `unavailable` when too many operations wait. */
  add(operation: Operation, bytes = 0): Promise<Result> {
    if (this.#waiting.length >= MAX_WAITING) return Promise.reject(storeUnavailable('too many operations are waiting'))
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    this.#waiting.push({ operation, bytes, since: performance.now(), resolve, reject })
    if (this.#underWay === 0) this.#send()
    else this.#slow ??= setTimeout(this.#send, SLOW_MS)
    return promise
  }

  readonly #send = (): void => {
    clearTimeout(this.#slow)
    this.#slow = undefined
    const together = this.#take()
    if (together.length === 0) return
    this.#underWay += 1
    void this.#answer(together).then(() => {
      this.#underWay -= 1
      this.#send()
    })
    if (this.#waiting.length > 0) this.#slow = setTimeout(this.#send, SLOW_MS)
  }

  #take(): Waiting<Operation, Result>[] {
    let bytes = 0
    const isOver = (each: Waiting<Operation, Result>, i: number) => {
      bytes += each.bytes
      return i >= MAX_TOGETHER || (i > 0 && bytes > MAX_TOGETHER_BYTES)
    }
    const end = this.#waiting.findIndex(isOver)
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end)
  }

  /** Never rejects. */
  async #answer(together: readonly Waiting<Operation, Result>[]): Promise<void> {
    const waitedMs = performance.now() - (together[0]?.since ?? 0)
    try {
      const operations = together.map(({ operation }) => operation)
      const results = await this.#run(operations, waitedMs)
      for (const [i, { resolve, reject }] of together.entries()) {
        const result = results[i]
        if (result?.status === 'fulfilled') resolve(result.value)
        else reject(result?.reason)
      }
    } catch (cause) {
      for (const { reject } of together) reject(cause)
    }
  }
}
