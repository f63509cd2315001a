import { setTimeout as sleep } from 'node:timers/promises'
import { retryUntil } from '../../kernel/async/retry.ts'
import { hasKind } from '../../kernel/errors.ts'

/** For how long, and how often, undoing is tried while the store does not answer. Until then the store may still carry out earlier writes. */
const WITHIN_MS = 60_000
const EVERY_MS = 250
const LATE_MS = 1_000

/**
 * `free` frees the Idempotency-Key of a request; `false`: another request has already been answered with the stored data, so it must stay. `takeBack`
 * removes the stored data, if there is any.
 */
export type Refused = { free(): Promise<boolean>; takeBack(): Promise<unknown> }

/**
 * Undoes a request that is refused with `cause`: frees its key, and removes the data that a store without an answer has stored or may still store
 * (D36.1). Resolves as soon as the request may be answered; never rejects.
 */
export async function undoRefused(cause: unknown, { free, takeBack }: Refused): Promise<void> {
  if (!hasKind(cause, 'unavailable')) return void (await free().catch(() => {}))
  const undo = async () => {
    if (await free()) await takeBack()
  }
  const until = performance.now() + WITHIN_MS
  void retryUntil(undo, { pauses: EVERY_MS, until, ref: false })
    .then(() => sleep(LATE_MS, undefined, { ref: false }))
    .then(undo)
    .catch(() => {}) // The store is away for longer than that.
}
