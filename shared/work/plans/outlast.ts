import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../kernel/errors.ts'

const WITHIN_MS = 15_000
const FIRST_PAUSE_MS = 10
const MAX_PAUSE_MS = 250

/** Repeats an operation while the store is away. Throws what `operation` throws, `unavailable` only after `withinMs`. */
export async function outlast<T>(operation: () => Promise<T>, withinMs = WITHIN_MS): Promise<T> {
  const until = performance.now() + withinMs
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await operation()
    } catch (cause) {
      if (!isUnavailable(cause) || performance.now() >= until) throw cause
      await sleep(pauseMs)
    }
  }
}

export const isUnavailable = (cause: unknown): boolean => cause instanceof AppError && cause.kind === 'unavailable'
