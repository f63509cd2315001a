import type { RateLimiter, Taken } from './port.ts'
import { takenOf, WINDOW_MS } from './window.ts'

export type MemoryRateLimits = { perMinute: number; maxClients?: number }

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
    const oldestMs = now - (this.#times[this.#first] ?? now)
    return takenOf({ isAllowed, limit, count: this.#times.length - this.#first, oldestMs })
  }

  #forget(until: number): void {
    while ((this.#times[this.#first] ?? Number.POSITIVE_INFINITY) <= until) this.#first++
    if (this.#first < SLACK) return
    this.#times = this.#times.slice(this.#first)
    this.#first = 0
  }
}
