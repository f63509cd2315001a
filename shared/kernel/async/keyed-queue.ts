export interface KeyedQueue {
  /** Runs `task` after all earlier tasks of `key` have ended; a failure belongs to its own caller only. */
  run<T>(key: string, task: () => Promise<T>): Promise<T>
  /** The number of keys with a task that has not ended. */
  readonly size: number
}

/** Creates a queue that runs the tasks of one key one after another, and the tasks of different keys concurrently. */
export function createKeyedQueue(): KeyedQueue {
  const lastByKey = new Map<string, Promise<unknown>>()
  return {
    run(key, task) {
      const result = (lastByKey.get(key) ?? Promise.resolve()).then(task)
      const settled = result
        .catch(() => {})
        .then(() => {
          if (lastByKey.get(key) === settled) lastByKey.delete(key)
        })
      lastByKey.set(key, settled)
      return result
    },
    get size() {
      return lastByKey.size
    },
  }
}
