import type { RateLimiter, Taken } from './port.ts'
import { takenOf, WINDOW_MS } from './window.ts'

export type MemoryRateLimits = { perMinute: number; maxClients?: number }

const MAX_CLIENTS = 10_000

/**
 * Counts in the memory of this process, with an exact sliding window. It keeps the request times of the `maxClients` most
 * recent clients.
 */
export class MemoryRateLimiter implements RateLimiter {
  readonly #perMinute: number
  readonly #maxClients: number
  readonly #now: () => number
  readonly #clients = new Map<string, RequestTimes>()

  constructor({ perMinute, maxClients = MAX_CLIENTS }: MemoryRateLimits, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute
    this.#maxClients = maxClients
    this.#now = now
  }

  take(key: string, limit = this.#perMinute): Taken {
    const clients = this.#clients
    const times = clients.get(key) ?? new RequestTimes()
    clients.delete(key) // Deleting and setting moves the key to the end, so the map stays in the order of use.
    if (clients.size >= this.#maxClients) deleteOldest(clients)
    clients.set(key, times)
    return times.take(this.#now(), limit)
  }
}

function deleteOldest(clients: Map<string, RequestTimes>): void {
  for (const key of clients.keys()) {
    clients.delete(key)
    return
  }
}

/** How many expired times may collect at the front of the array before it is copied without them. */
const SLACK = 64

/** The times of one client's counted requests, oldest first. Those before index `#first` have left the window. */
class RequestTimes {
  #times: number[] = []
  #first = 0

  take(now: number, limit: number): Taken {
    this.#dropExpired(now - WINDOW_MS)
    const isAllowed = this.#times.length - this.#first < limit
    if (isAllowed) this.#times.push(now)
    const oldestMs = now - (this.#times[this.#first] ?? now)
    return takenOf({ isAllowed, limit, count: this.#times.length - this.#first, oldestMs })
  }

  #dropExpired(until: number): void {
    while ((this.#times[this.#first] ?? Number.POSITIVE_INFINITY) <= until) this.#first++
    if (this.#first < SLACK) return
    this.#times = this.#times.slice(this.#first)
    this.#first = 0
  }
}
