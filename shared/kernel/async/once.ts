/** Calls `make` once and keeps its result. After a failure the next call tries again. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  const makeAnew = () =>
    make().catch((cause: unknown) => {
      made = undefined
      throw cause
    })
  return () => (made ??= makeAnew())
}
