import { setTimeout as sleep } from 'node:timers/promises'
import { retryUntil } from '../../kernel/async/retry.ts'
import { hasKind } from '../../kernel/errors.ts'

/** For how long, and how often, it is tried at a store that does not answer, and how late that may still store what it was sent. */
const WITHIN_MS = 60_000
const EVERY_MS = 250
const LATE_MS = 1_000

/**
 * `free` frees the Idempotency-Key of a request; `false`: another request has been told of what it has stored, so that this stays. `takeBack` removes that, or does
 * nothing where the store has not got it.
 */
export type Refused = { free(): Promise<boolean>; takeBack(): Promise<unknown> }

/**
 * Undoes a request that is refused with `cause`: its key is free, and what a store that did not answer may have stored, or may yet, is taken back
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
    .catch(() => {}) // It is away for longer.
}
