import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { elapsedMs } from './elapsed.ts'

export type Waiting = {
  /** Names the awaited condition in the error message: `the worker to be a member again`. */
  what: string
  withinMs?: number
  everyMs?: number
  /** Describes the current state for the error message. Without it, the message shows the condition's last value. */
  lastSeen?: () => unknown
}

const WITHIN_MS = 45_000
const EVERY_MS = 5
const MAX_SEEN_CHARS = 500

/**
 * Checks `condition` at intervals and resolves with its first truthy value. Rejects after `withinMs` with an error that
 * names what it waited for and what it saw last. An error that the condition throws is passed on at once. Use it only
 * where no event announces the change.
 */
export async function until<T>(condition: () => T | Promise<T>, waiting: Waiting): Promise<Truthy<T>> {
  const { withinMs = WITHIN_MS, everyMs = EVERY_MS } = waiting
  const deadline = elapsedMs() + withinMs
  for (;;) {
    const value = await condition()
    if (value) return value as Truthy<T>
    if (elapsedMs() >= deadline) throw new Error(messageFor(waiting, withinMs, value))
    await sleep(everyMs)
  }
}

type Truthy<T> = Exclude<T, undefined | null | false | 0 | ''>

function messageFor({ what, lastSeen }: Waiting, withinMs: number, value: unknown): string {
  const seen = inspect(lastSeen ? lastSeen() : value, { breakLength: Number.POSITIVE_INFINITY })
  return `waited ${withinMs / 1000} s for ${what}; last seen: ${seen.slice(0, MAX_SEEN_CHARS)}`
}
