/** Resolves once all that was written before the call is on the disk: one `sync` at a time, for all who wait. */
export function createFlush(sync: () => Promise<void>): () => Promise<void> {
  let running: Promise<unknown> = Promise.resolve()
  let next: Promise<void> | undefined
  const begin = () => {
    next = undefined
    const syncing = sync()
    running = syncing.catch(() => {}) // Those who wait for this one hear of it.
    return syncing
  }
  return () => (next ??= running.then(begin))
}
