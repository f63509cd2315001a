import type { ModelProvider } from '../port.ts'

/** D5.5. */
const MAX_FAILURES = 3
const OPEN_MS = 30_000

type State = { failures: number; skippedUntil: number }

const states = new WeakMap<ModelProvider, State>()

/**
 * Whether runs with a fallback skip this provider, because it has failed three runs in a row. After 30 s one run may try it again:
 * for the others it is skipped for another 30 s, unless that run succeeds. `now` is in milliseconds.
 */
export function isSkipped(provider: ModelProvider, now: number): boolean {
  const state = states.get(provider)
  if (!state || state.failures < MAX_FAILURES) return false
  if (now < state.skippedUntil) return true
  state.skippedUntil = now + OPEN_MS
  return false
}

export function noteSuccess(provider: ModelProvider): void {
  states.delete(provider)
}

export function noteFailure(provider: ModelProvider, now: number): void {
  const failures = (states.get(provider)?.failures ?? 0) + 1
  states.set(provider, { failures, skippedUntil: now + OPEN_MS })
}
