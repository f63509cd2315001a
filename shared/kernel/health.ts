/**
 * Tracks whether a server is reachable. It counts as away from the first failure until the next answer; `awayMs` is 0 while it
 * is reachable.
 */
export type Health = { answered(): void; failed(): void; awayMs(): number }

export function createHealth(): Health {
  let awaySince: number | undefined
  return {
    answered: () => (awaySince = undefined),
    failed: () => (awaySince ??= performance.now()),
    awayMs: () => (awaySince === undefined ? 0 : performance.now() - awaySince),
  }
}
