/** Whether a server answers: it is away from the first failure until the next answer. */
export type Health = { answered(): void; failed(): void; awayMs(): number }

export function createHealth(): Health {
  let awaySince: number | undefined
  return {
    answered: () => (awaySince = undefined),
    failed: () => (awaySince ??= performance.now()),
    awayMs: () => (awaySince === undefined ? 0 : performance.now() - awaySince),
  }
}
