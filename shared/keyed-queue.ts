/** Runs what is asked for under one name one after the other, and different names side by side. */
export function createKeyedQueue(): <T>(name: string, act: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>()
  return (name, act) => {
    const turn = (last.get(name) ?? Promise.resolve()).then(act)
    const ended = turn
      .catch(() => {})
      .then(() => {
        if (last.get(name) === ended) last.delete(name)
      })
    last.set(name, ended)
    return turn
  }
}
