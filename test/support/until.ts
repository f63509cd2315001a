import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { elapsedMs } from './elapsed.ts'

export type Waiting = {
  /** Names the awaited condition in the error message: `the worker to be a member again`. */
  what: string
  withinMs?: number
  /** A fixed pause between two checks. */
  everyMs?: number
  /** Describes the current state for the error message. Without it, the message shows the condition's last value. */
  lastSeen?: () => unknown
}

const WITHIN_MS = 45_000
/** The pause before the condition is checked again: a tenth of the time waited so far, since a check may be a request to the whole product. */
const PAUSE = { least: 5, most: 100, share: 0.1 }
const MAX_SEEN_CHARS = 500

/**
 * Checks `condition` again and again, and resolves with its first truthy value. Rejects after `withinMs` with an error that
 * names what it waited for and what it saw last. An error that the condition throws is passed on at once. Use it only
 * where no event announces the change.
 */
export async function until<T>(condition: () => T | Promise<T>, waiting: Waiting): Promise<Truthy<T>> {
  const { withinMs = WITHIN_MS, everyMs } = waiting
  const since = elapsedMs()
  for (;;) {
    const value = await condition()
    if (value) return value as Truthy<T>
    const waited = elapsedMs() - since
    if (waited >= withinMs) throw new Error(messageFor(waiting, withinMs, value))
    await sleep(everyMs ?? Math.min(Math.max(PAUSE.least, waited * PAUSE.share), PAUSE.most))
  }
}

type Truthy<T> = Exclude<T, undefined | null | false | 0 | ''>

function messageFor({ what, lastSeen }: Waiting, withinMs: number, value: unknown): string {
  const seen = inspect(lastSeen ? lastSeen() : value, { breakLength: Number.POSITIVE_INFINITY })
  return `waited ${withinMs / 1000} s for ${what}; last seen: ${seen.slice(0, MAX_SEEN_CHARS)}`
}
