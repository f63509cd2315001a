export type Taken = {
  isAllowed: boolean
  limit: number
  remaining: number
  /** Until the oldest counted request leaves the window. */
  resetSecs: number
}

/** Counts requests by client. A refused request is not counted. */
export interface RateLimiter {
  take(key: string): Taken | Promise<Taken>
}

export type MemoryRateLimits = { perMinute: number; maxClients?: number }

const WINDOW_MS = 60_000
const MAX_CLIENTS = 10_000

/** The exact sliding window in this process's memory: the times of each client's last requests, for as many clients as were seen last. */
export function createMemoryRateLimiter(
  { perMinute, maxClients = MAX_CLIENTS }: MemoryRateLimits,
  now: () => number = () => performance.now(),
): RateLimiter {
  const clients = new Map<string, RequestTimes>()
  return {
    take(key) {
      const times = clients.get(key) ?? new RequestTimes()
      clients.delete(key) // Set anew below, a key goes to the end: the map is in the order of use.
      if (clients.size >= maxClients) forgetFirst(clients)
      clients.set(key, times)
      return times.take(now(), perMinute)
    },
  }
}

function forgetFirst(clients: Map<string, RequestTimes>): void {
  for (const key of clients.keys()) {
    clients.delete(key)
    return
  }
}

/** How many times that have left the window may pile up before they are cut off. */
const SLACK = 64

/** When one client's counted requests came, oldest first; those before `#first` have left the window. */
class RequestTimes {
  #times: number[] = []
  #first = 0

  take(now: number, limit: number): Taken {
    this.#forget(now - WINDOW_MS)
    const isAllowed = this.#times.length - this.#first < limit
    if (isAllowed) this.#times.push(now)
    const oldest = this.#times[this.#first] ?? now
    return {
      isAllowed,
      limit,
      remaining: limit - (this.#times.length - this.#first),
      resetSecs: Math.max(1, Math.ceil((WINDOW_MS - (now - oldest)) / 1000)),
    }
  }

  #forget(until: number): void {
    while ((this.#times[this.#first] ?? Number.POSITIVE_INFINITY) <= until) this.#first++
    if (this.#first < SLACK) return
    this.#times = this.#times.slice(this.#first)
    this.#first = 0
  }
}
