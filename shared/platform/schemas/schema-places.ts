import type { TenantId } from '../../kernel/tenant.ts'
import { SchemaThread, type ThreadAnswer } from './schema-thread.ts'

/**
 * A thread and the tenant that uses it: while it runs a check of the tenant, or is starting because a check of the tenant ended its
 * predecessor. `lastTenant` used the place last.
 */
export type Place = {
  thread: SchemaThread
  tenant: TenantId | undefined
  lastTenant: TenantId | undefined
  isChecking: boolean
}

type PlaceEvents = {
  onReady(): void
  onAnswer(place: Place, answer: ThreadAnswer): void
  onFailure(place: Place, failure: { cause: unknown; isMemory: boolean }): void
}

/**
 * The threads of a process. `maxChecking` of them may check at the same time, and one more for a tenant that has none. So another tenant
 * never waits for the checks of a tenant that uses all it can get. The threads start as they are needed.
 */
export class SchemaPlaces {
  readonly #maxChecking: number
  readonly #events: PlaceEvents
  #places: Place[] = []
  #firstTenant: TenantId | undefined
  #isShared = false

  constructor(maxChecking: number, events: PlaceEvents) {
    this.#maxChecking = maxChecking
    this.#events = events
  }

  /**
   * A place for a check of the tenant, if it may have one now: preferably the one that it used last, whose thread has its schemas. So a
   * tenant whose checks end their threads does not affect others.
   */
  take(tenant: TenantId): Place | undefined {
    this.#firstTenant ??= tenant
    this.#isShared ||= this.#firstTenant !== tenant
    if (!this.mayTake(tenant)) return undefined
    const free = this.#places.filter(isFree)
    const lastOf = (wanted: TenantId | undefined) => free.find(({ lastTenant }) => lastTenant === wanted)
    const place = lastOf(tenant) ?? lastOf(undefined) ?? free[0]
    if (!place) return undefined
    place.tenant = tenant
    place.lastTenant = tenant
    place.isChecking = true
    return place
  }

  /** The last free place is for a tenant that has none, as soon as there are several tenants. */
  mayTake(tenant: TenantId): boolean {
    const free = this.#places.filter(isFree).length
    const checking = this.#places.filter(({ isChecking }) => isChecking).length
    const hasNone = this.#places.every((place) => place.tenant !== tenant)
    if (hasNone) return free > 0 && checking <= this.#maxChecking
    return free > (this.#isShared ? 1 : 0) && checking < this.#maxChecking
  }

  /** Starts the first thread, and later keeps one unused thread ready: two if tenants could end each other's threads. */
  startMore(): void {
    const isAnyReady = this.#places.some(({ thread }) => thread.isReady)
    const inUse = this.#places.filter(({ tenant }) => tenant !== undefined).length
    const ahead = this.#isShared ? 2 : 1
    const wanted = isAnyReady ? Math.min(inUse, this.#maxChecking) + ahead : 1
    while (this.#places.length < wanted) this.#places.push(this.#start())
  }

  free(place: Place): void {
    place.isChecking = false
    place.tenant = undefined
  }

  /** Ends the thread of a place and starts another one. Until that is ready, the tenant has the place. */
  replaceThread(place: Place): void {
    void place.thread.end()
    this.remove(place)
    this.#places.push({ ...this.#start(), tenant: place.tenant, lastTenant: place.lastTenant })
  }

  remove(place: Place): void {
    this.#places = this.#places.filter((other) => other !== place)
  }

  async endAll(): Promise<void> {
    const places = this.#places
    this.#places = []
    this.#firstTenant = undefined
    this.#isShared = false
    await Promise.all(places.map(({ thread }) => thread.end()))
  }

  #start(): Place {
    const thread: SchemaThread = new SchemaThread({
      onReady: () => {
        const place = placeOf()
        if (place) this.free(place)
        this.#events.onReady()
      },
      onAnswer: (answer) => {
        const place = placeOf()
        if (place) this.#events.onAnswer(place, answer)
      },
      onFailure: (cause, isMemory) => {
        const place = placeOf()
        if (place) this.#events.onFailure(place, { cause, isMemory })
      },
    })
    const placeOf = () => this.#places.find((place) => place.thread === thread)
    return { thread, tenant: undefined, lastTenant: undefined, isChecking: false }
  }
}

const isFree = ({ thread, isChecking }: Place): boolean => thread.isReady && !isChecking
