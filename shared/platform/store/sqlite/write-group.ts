import type { DatabaseSync } from 'node:sqlite'
import { storeUnavailable } from '../unavailable.ts'
import type { OperationGuard } from './guard.ts'
import { transact } from './transact.ts'

export type WriteGroupParts = {
  db: DatabaseSync
  guard: OperationGuard
  /** Resolves when everything that was written before the call is on the disk. */
  sync(): Promise<void>
}

/** Runs its statements when it is called. Returns whether it has written anything, or what it has written. */
type Write<T> = () => T

type Waiting = { write: Write<unknown>; resolve(result: unknown): void; reject(cause: unknown): void }

type Written = { waiting: Waiting; value: unknown }
type Result = { value: unknown } | { cause: unknown }

/** A larger transaction would block the event loop for milliseconds. */
const MAX_TOGETHER = 100

/**
 * The writes that are acknowledged when they are on the disk. A write that comes while no other is being synced runs at once; those that come
 * meanwhile run together as one transaction after that. A failed write does not affect the others.
 */
export class WriteGroup {
  readonly #parts: WriteGroupParts
  #waiting: Waiting[] = []
  #isSyncing = false

  constructor(parts: WriteGroupParts) {
    this.#parts = parts
  }

  /** Resolves with the result of `write`: when it is on the disk, or as soon as it is known that nothing was written. */
  add<T>(write: Write<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({ write, resolve, reject })
    if (!this.#isSyncing) this.#commit()
    return promise
  }

  #commit(): void {
    const together = this.#waiting.splice(0, MAX_TOGETHER)
    if (together.length === 0) return
    const written: Written[] = []
    for (const [i, result] of this.#run(together).entries()) {
      const waiting = together[i]
      if (!waiting) continue
      if ('cause' in result) waiting.reject(result.cause)
      else if (result.value) written.push({ waiting, value: result.value })
      else waiting.resolve(result.value)
    }
    if (written.length === 0) return this.#commit()
    this.#isSyncing = true
    void this.#acknowledge(written)
  }

  /** Never rejects. */
  async #acknowledge(written: readonly Written[]): Promise<void> {
    try {
      await this.#parts.sync()
      for (const { waiting, value } of written) waiting.resolve(value)
    } catch (cause) {
      for (const { waiting } of written) waiting.reject(storeUnavailable(cause))
    }
    this.#isSyncing = false
    this.#commit()
  }

  #run(together: readonly Waiting[]): readonly Result[] {
    const { db, guard } = this.#parts
    if (together.length === 1) return together.map(resultOf)
    let hasBegun = false
    try {
      return guard(() =>
        transact(db, () => {
          hasBegun = true
          return together.map(({ write }) => ({ value: write() }))
        }),
      )
    } catch (cause) {
      // The file is locked, and each write would wait for that again.
      if (!hasBegun) return together.map(() => ({ cause }))
      return together.map(resultOf)
    }
  }
}

function resultOf({ write }: Waiting): Result {
  try {
    return { value: write() }
  } catch (cause) {
    return { cause }
  }
}
