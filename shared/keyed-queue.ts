export type KeyedQueue = <T>(key: string, task: () => Promise<T>) => Promise<T>

/** Creates a queue that runs the tasks of one key one after another, and the tasks of different keys concurrently. */
export function createKeyedQueue(): KeyedQueue {
  const lastByKey = new Map<string, Promise<unknown>>()
  return (key, task) => {
    const result = (lastByKey.get(key) ?? Promise.resolve()).then(task)
    // A task that fails does not keep the next one from running; its failure belongs to its own caller.
    const settled = result
      .catch(() => {})
      .then(() => {
        if (lastByKey.get(key) === settled) lastByKey.delete(key)
      })
    lastByKey.set(key, settled)
    return result
  }
}
